"""What a report shows: a profile by one metric, of which part, and in how many rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from deepcontext.profiler.model.source import line_text
from deepcontext.profiler.summaries.basis import Part, basis_of
from deepcontext.ui.format import shorten_path
from deepcontext.ui.sections.table import Column, Table, Unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.place import Place
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.basis import Basis
    from deepcontext.profiler.summaries.groups import Group
    from deepcontext.ui.sections.table import Row


@dataclass(frozen=True, slots=True)
class View:
    """What a report shows: a profile by one metric, with at most `limit` rows in a table.

    `processes` are the profiles of all processes of the run, if it had several.
    """

    profile: Profile
    metric: str
    limit: int
    processes: Sequence[Profile] = ()

    @property
    def unit(self) -> str:
        """Unit of the metric, "" in a profile that has none."""
        rows = self.profile.metrics.get(self.metric)
        return rows.descriptor.unit if rows else ""

    @property
    def basis(self) -> Basis:
        """What the profile is of."""
        return basis_of(self.profile)

    @property
    def run(self) -> View:
        """The whole run, whatever the profile is of."""
        return replace(self, profile=self.basis.whole)

    @property
    def each(self) -> str:
        """``" a step"`` after a value, "" where values are sums of a run."""
        return " a step" if self.basis.steps else ""

    @property
    def of_run(self) -> str:
        """What the title of a table of the whole run adds, "" where all tables are."""
        return "" if self.basis.part is Part.RUN else ", of the whole run"

    def time(self, value_ns: float | None) -> str:
        """Return a sum of times in ns as text, divided by the steps."""
        return self.text_of(value_ns, Unit.NS)

    def text_of(self, value: float | None, unit: Unit) -> str:
        """Return a value as text, divided by the steps where it is a sum."""
        return self.table("", "", (), ()).text_of(value, unit)

    def table(
        self, title: str, note: str, columns: Sequence[Column], rows: Sequence[Row], **more: Any
    ) -> Table:
        """Return a table whose sums are divided by the steps; `more` as in `Table`."""
        steps = self.basis.divisor
        return Table(title, note, columns, rows, steps=steps, metric_unit=self.unit, **more)

    def line_columns(self, heading: str = "line", *, rank: int = 5) -> tuple[Column, Column]:
        """Return the columns of rows with "file" and "line"; `rank` is that of the line's text."""
        return (
            Column(self.place, heading, Unit.PATH),
            Column(self._source, "source", Unit.SOURCE, rank),
        )

    def place(self, row: Row) -> str:
        """Return ``"train.py:12"``; a "file" without a line is a text."""
        if not row["line"]:
            return str(row["file"])
        return f"{shorten_path(row['file'], self.profile.run.cwd)}:{row['line']}"

    def _source(self, row: Row) -> str:
        if "source" in row:
            return str(row["source"])
        return self.text(row["file"], row["line"]) if row["line"] else ""

    def line(self, row: Place) -> dict[str, object]:
        """Return the keys of a row about a source line, with its text."""
        place = {"file": row.file, "line": row.line, "function": row.function}
        return {**place, "source": self.text(row.file, row.line)}

    def frame(self, frame: Frame | None) -> dict[str, object]:
        """Return the same keys for a frame, without values for no frame."""
        if frame is None:
            return {"file": "", "line": 0, "function": "", "source": ""}
        return {**line_of(frame), "source": self.text(frame.file, frame.line)}

    def text(self, file: str, line: int) -> str:
        """Return a source line, "" where it is not known or may have changed."""
        return line_text(self.profile, file, line)


def line_of(row: Frame | Group) -> dict[str, object]:
    """Return the keys of a row about a source line."""
    return {"file": row.file, "line": row.line, "function": row.name}
