"""The call paths with a nonzero cost, from which every export format is made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from deepcontext.ui.measures import values_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.ui.measures import Measure


@dataclass(frozen=True, slots=True, eq=False)
class Stacks:
    """Call paths and their costs.

    Attributes:
        profile: the profile of the call paths.
        measures: the measures of `values`.
        values: exclusive cost by measure and node, in the measure's unit; shape (measures, nodes), int64.
    """

    profile: Profile
    measures: Sequence[Measure]
    values: npt.NDArray[np.int64]

    @classmethod
    def of(cls, profile: Profile, measures: Sequence[Measure]) -> Stacks:
        """Return the call paths of a profile with the given measures."""
        values = np.stack([values_of(profile, measure.key) for measure in measures])
        return cls(profile, measures, values)

    def without_negative(self) -> Stacks:
        """Return a copy with 0 in place of negative values."""
        return replace(self, values=np.maximum(self.values, 0))

    def paths(self) -> Iterator[tuple[int, list[int]]]:
        """Yield each node with a nonzero cost, and the frames of its path below the root.

        Frames are indices into the profile's frames, outermost first; nodes are in the order of the tree.
        """
        tree = self.profile.tree
        frame, depth = tree.frame.tolist(), tree.depth.tolist()
        costs = np.any(self.values, axis=0).tolist()
        path = [0] * (max(depth) + 1)
        for node, level in enumerate(depth):
            path[level] = frame[node]
            if costs[node]:
                yield node, path[1 : level + 1]
