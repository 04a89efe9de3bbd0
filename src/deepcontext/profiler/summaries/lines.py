"""Which lines of the user's code take the most, and the line that each node belongs to.

A node belongs to the innermost line of the user's code at or above the node.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.model.grouping import NO_GROUP, sums
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.groups import FrameGroups, Grouping

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

    Ints = npt.NDArray[np.int64]
    Numbers = npt.NDArray[np.int64] | npt.NDArray[np.float64]


def _user_lines(profile: Profile) -> FrameGroups:
    frames = profile.frames
    return FrameGroups.of_frames(profile.is_user_code(), frames.source_line())


def _python_lines(profile: Profile) -> FrameGroups:
    frames = profile.frames
    is_line = (frames.kind == FrameKind.PYTHON) & (frames.line > 0)
    return FrameGroups.of_frames(is_line, frames.source_line())


def nearest_user(profile: Profile) -> Ints:
    """Return the nearest frame of the user's code at or above each node, or `NO_NODE`, shape (nodes,)."""
    tree = profile.tree
    return profile.once(nearest_user, lambda: tree.nearest(profile.is_user_code()[tree.frame]))


def by_nearest(profile: Profile, values: Ints, places: npt.NDArray[np.bool_]) -> Counter[Frame]:
    """Return sums of a value by the line of the nearest of `places` at or above each node."""
    nearest = profile.tree.nearest(places)
    nodes = np.flatnonzero((nearest != NO_NODE) & (values > 0))
    found: Counter[Frame] = Counter()
    for place, value in zip(nearest[nodes].tolist(), values[nodes].tolist(), strict=True):
        frame = profile.frame(place)
        found[Frame(FrameKind.PYTHON, frame.name, frame.file, frame.line)] += value
    return found


# By line of the user's code (`is_user_file`). The exclusive value of a line excludes deeper lines of the
# user's code. A line that was only sampled has no value of the metric, and is left out.
by_line: Final = Grouping(
    FrameKind.PYTHON, largest="inclusive", groups=_user_lines, only_with_value=True
)
# By line of any Python code, libraries included. The exclusive value of a line excludes deeper lines.
by_python_line: Final = Grouping(FrameKind.PYTHON, largest="exclusive", groups=_python_lines)


@dataclass(frozen=True, slots=True, eq=False)
class UserLines:
    """The lines of the user's code, and the line that each node belongs to.

    Attributes:
        frame: the first frame of each line, ascending, shape (lines,), int64.
        of_node: index of each node's line or `NO_GROUP`, shape (nodes,), int64.
    """

    frame: Ints
    of_node: Ints

    @classmethod
    def of(cls, profile: Profile) -> UserLines:
        """Return the lines of a profile; computed once, because most summaries and findings ask."""
        return profile.once("user lines", lambda: cls._computed(profile))

    @classmethod
    def _computed(cls, profile: Profile) -> UserLines:
        lines, nearest = _user_lines(profile), nearest_user(profile)
        line = lines.of_frame[profile.tree.frame[nearest]]
        return cls(lines.example, np.where(nearest == NO_NODE, NO_GROUP, line))

    def frame_of(self, profile: Profile, index: int) -> Frame:
        """Return the first frame of a line."""
        return profile.frames[int(self.frame[index])]

    def largest(self, *values: Numbers) -> Ints:
        """Return the lines of which a value is above 0, by the first value, then by the next, largest first.

        Args:
            values: of each line, shape (lines,).
        """
        order = np.lexsort((self.frame, *(-column for column in reversed(values))))
        return order[np.any([column[order] > 0 for column in values], axis=0)]

    def sums(self, values: Ints, within: npt.NDArray[np.bool_] | None = None) -> Ints:
        """Return the sum of a value over the nodes of each line, shape (lines,).

        Args:
            values: exclusive value of each node, shape (nodes,).
            within: nodes to include, shape (nodes,); all if None.
        """
        has_line = self.of_node != NO_GROUP
        mask = has_line if within is None else has_line & within
        return sums(self.of_node[mask], values[mask], len(self.frame))
