"""Where a late rank lost its time: what it did longer than the other ranks before the same collectives.

Samples of the stretches before the collectives to which the rank came last are compared with the other
members' samples before the same ones. Sampled: says nothing of delays much shorter in all than some
sampling intervals.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.rank_collectives import IN_COLLECTIVE
from deepcontext.profiler.format.user_code import is_user_file
from deepcontext.profiler.summaries import rank_collectives

if TYPE_CHECKING:
    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.profile_model import ProfileModel as Profile
    from deepcontext.profiler.summaries.late_ranks import RankDelays
    from deepcontext.profiler.summaries.rank_collectives import (
        Comparison,
        FrameText,
        StretchSample,
    )

    Path = tuple[FrameText, ...]

_LOADING: Final = "loading data"
# Share of what a rank cost the others.
_ENOUGH: Final = 0.5
# Of what the worst rank cost; the line of less would be noise.
_SMALL: Final = 0.1


@dataclass(frozen=True, slots=True)
class LatePlace:
    """A line that took a late rank longer than the others.

    Attributes:
        node: the deepest node of the line's costliest path.
        frame: the nearest Python frame of user code; None without one.
        doing: an element of `rank_collectives.DOING`, or "loading data".
        excess_ns: what the rank spent there more than the mean of the other members, of the
            collectives that were compared.
        share: of the excess of all places of the rank.
    """

    node: int
    frame: Frame | None
    doing: str
    excess_ns: int
    share: float


def late_places(profile: Profile, rank: int) -> tuple[LatePlace, ...]:
    """Return where a rank of a merged profile lost its time, the largest excess first.

    Raises:
        ProfileDataError: the section cannot be read.
    """
    excess: dict[tuple[Path, str], float] = defaultdict(float)
    caused = 0.0
    used: dict[int, set[int]] = defaultdict(set)
    for group in rank_collectives.compare(profile).groups:
        if rank in group.group.members:
            member = group.group.members.index(rank)
            caused += float(group.caused_ns[member].sum())
            _add_excess(excess, group, member, used)
    excess = _own(excess, caused)
    lines: dict[tuple[Frame | None, str], list[tuple[float, int]]] = defaultdict(list)
    for (path, doing), ns in excess.items():
        node = _node_of(profile, path)
        is_loading = int(profile.tree.phase[node]) == Phase.DATA_LOADING
        line = _user_frame(profile, node)
        lines[line, _LOADING if is_loading else doing].append((ns, node))
    sums = {key: sum(ns for ns, _ in found) for key, found in lines.items()}
    positive = sum(ns for ns in sums.values() if ns > 0)
    order = sorted((key for key in sums if sums[key] > 0), key=lambda key: -sums[key])
    return tuple(
        LatePlace(
            node=max(lines[key])[1],
            frame=key[0],
            doing=key[1],
            excess_ns=round(sums[key]),
            share=sums[key] / positive,
        )
        for key in order
    )


def main_place(profile: Profile, row: RankDelays, worst_ns: int) -> LatePlace | None:
    """Return where a rank lost most of its time; None if it cost little of what the worst rank cost.

    Raises:
        ProfileDataError: the section cannot be read.
    """
    if row.caused_ns <= _SMALL * worst_ns:
        return None
    return next(iter(late_places(profile, row.rank)), None)


def _add_excess(
    excess: dict[tuple[Path, str], float],
    group: Comparison,
    member: int,
    used: dict[int, set[int]],
) -> None:
    """Add the samples before the collectives to which a member came late, less the mean of the others'.

    `used`: orders of each rank that are in `excess` already.
    """
    others = len(group.samples) - 1
    for index, samples in enumerate(group.samples):
        weight = 1.0 if index == member else -1.0 / others
        orders = _orders(group, member, index) & samples.keys()
        taken = used[group.group.members[index]]
        for order in sorted(orders - taken):
            for sample in samples[order]:
                excess[_key(sample)] += weight * sample.ns
        taken |= orders


def _orders(group: Comparison, late: int, member: int) -> set[int]:
    """Return the stretches of a member since the group's collective before, where `late` came late."""
    orders: set[int] = set()
    for n in np.flatnonzero(group.caused_ns[late]).tolist():
        end = int(group.order[member, n])
        follows = n > 0 and group.number[n - 1] == group.number[n] - 1
        start = int(group.order[member, n - 1]) if follows else end - 1
        orders.update(range(start + 1, end + 1))
    return orders


def _own(excess: dict[tuple[Path, str], float], caused_ns: float) -> dict[tuple[Path, str], float]:
    """Return the excess without waiting in collectives, where the rest tells why the rank was late.

    A sampling interval that ends in a stretch may have begun in the collective before. But what waits
    for something else while a collective is in flight looks the same.
    """
    own = {key: ns for key, ns in excess.items() if key[1] != IN_COLLECTIVE}
    return own if sum(ns for ns in own.values() if ns > 0) >= _ENOUGH * caused_ns else excess


def _key(sample: StretchSample) -> tuple[Path, str]:
    return sample.path, sample.doing


def _node_of(profile: Profile, path: Path) -> int:
    """Return the deepest node that is on the path, on the thread that has most of it."""
    deepest, most = 0, 0
    for thread in profile.tree.children(0):
        node, depth = thread, 0
        for wanted in path:
            found = _child(profile, node, wanted)
            if found is None:
                break
            node, depth = found, depth + 1
        if depth > most:
            deepest, most = node, depth
    return deepest


def _child(profile: Profile, node: int, wanted: FrameText) -> int | None:
    for child in profile.tree.children(node):
        frame = profile.frame(child)
        if (int(frame.kind), frame.name, frame.file, frame.line) == wanted:
            return child
    return None


def _user_frame(profile: Profile, node: int) -> Frame | None:
    for each in reversed(profile.tree.path(node)):
        frame = profile.frame(each)
        if frame.kind is FrameKind.PYTHON and is_user_file(frame.file):
            return frame
    return None
