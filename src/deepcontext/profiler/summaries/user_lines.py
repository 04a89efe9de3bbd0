"""The lines of the program's own files, and which of them each node of the tree belongs to.

Does not decide what is summed by line. A node belongs to the innermost own line at or above it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepcontext.profiler.model.grouping import NO_GROUP, sums
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries import summary

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

    Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class OwnLines:
    """Lines of the program's own files.

    Attributes:
        frame: the first frame of each line, ascending, shape (lines,), int64.
        of_node: line of each node or `NO_GROUP`, shape (nodes,), int64.
    """

    frame: Ints
    of_node: Ints

    @classmethod
    def of(cls, profile: Profile) -> OwnLines:
        """Return the lines of a profile."""
        tree = profile.tree
        own = np.flatnonzero(summary.user_frames(profile))
        _, first, inverse = np.unique(
            source_lines(profile)[own], return_index=True, return_inverse=True
        )
        # Lines in the order of their first frames.
        order = np.argsort(first)
        rank = np.empty(len(first), np.int64)
        rank[order] = np.arange(len(first))
        of_frame = np.full(len(profile.frames), NO_GROUP, np.int64)
        of_frame[own] = rank[np.ravel(inverse)]
        group = of_frame[tree.frame]
        nearest = tree.nearest(group != NO_GROUP)
        return cls(own[first[order]], np.where(nearest == NO_NODE, NO_GROUP, group[nearest]))

    def sums(self, values: Ints, within: npt.NDArray[np.bool_] | None = None) -> Ints:
        """Return the sum of a value over the nodes of each line, shape (lines,).

        Args:
            values: value of each node alone, shape (nodes,).
            within: nodes that count, shape (nodes,); all if None.
        """
        owned = self.of_node != NO_GROUP
        mask = owned if within is None else owned & within
        return sums(self.of_node[mask], values[mask], len(self.frame))


def source_lines(profile: Profile) -> Ints:
    """Return a number for the source line of each frame, shape (frames,)."""
    return (profile.frames.file.astype(np.int64) << 32) | profile.frames.line
