"""The trees that questions are about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.errors import QueryError
from tests.ui.oracle.difference import Difference
from tests.ui.oracle.top_down import TopDown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.ui.web.open_profiles import OpenProfiles
    from tests.ui.oracle.options import TreeOptions


def tree_of(profiles: OpenProfiles, index: int, options: TreeOptions) -> TopDown:
    """Return a tree of a profile; the last trees are kept."""
    opened = profiles.get(index)
    shape = options.shape()
    view = profiles.keep(("tree", opened.version, shape), lambda: TopDown(opened.profile, shape))
    return view if options.phase is None else view.counting(options.phase)


def difference_of(profiles: OpenProfiles, files: Sequence[int], options: TreeOptions) -> Difference:
    """Return the merged trees of some profiles.

    Raises:
        QueryError: only one profile is open.
    """
    if len(profiles) < 2:
        raise QueryError("a difference needs two profiles: deepcontext view A.dcprof B.dcprof")
    return Difference([tree_of(profiles, file, options) for file in files])
