"""The tables that views show: to add one, write a summary and name it here.

The page, the comparison and the JSON report take their tables from this list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.summaries.gpu import by_kernel
from deepcontext.profiler.summaries.lines import by_line
from deepcontext.profiler.summaries.modules import by_module
from deepcontext.profiler.summaries.operators import by_operator
from deepcontext.profiler.summaries.scopes import by_scope

if TYPE_CHECKING:
    from deepcontext.profiler.format.frame import FrameKind
    from deepcontext.profiler.summaries.groups import Grouping


@dataclass(frozen=True, slots=True)
class Table:
    """One way to group a profile.

    Attributes:
        name: name in addresses of the page, ``operator``.
        plural: name in JSON and headings, ``operators``.
        make: groups the frames, and computes the rows from a profile, the name of a metric and the
            number of rows, 0 for all.
        is_compared: whether the comparison of two profiles has this table.
    """

    name: str
    plural: str
    make: Grouping
    is_compared: bool = True

    @property
    def kind(self) -> FrameKind:
        """Return the kind of the frames that the rows represent."""
        return self.make.kind


TABLES: Final = {
    table.name: table
    for table in (
        Table("operator", "operators", by_operator),
        Table("module", "modules", by_module),
        # An edit moves the lines below it, so functions are compared instead.
        Table("line", "lines", by_line, is_compared=False),
        Table("scope", "scopes", by_scope, is_compared=False),
        Table("kernel", "kernels", by_kernel),
    )
}
