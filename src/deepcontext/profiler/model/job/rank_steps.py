"""Kept steps of the ranks of a job: the slowest and random ones of all ranks, as many as one run has.

Nodes are keys of paths until the tree is made. Invariant: which steps are kept does not depend on the order
in which ranks are joined. Spans of paths that `bounds.py` left out are left out.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format import schema, wire
from deepcontext.profiler.model.exemplars import ExemplarReason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    import numpy.typing as npt

    from deepcontext.profiler.model.exemplars import Exemplar, Lane
    from deepcontext.profiler.model.profile import Profile

    Keys = npt.NDArray[np.uint64]

# Of each reason, as in a run (`native/core/step_history.h`).
MOST: Final = 8
_DTYPES: Final = {"INT32": "<i4", "INT64": "<i8"}


@dataclass(frozen=True, slots=True, eq=False)
class RankStep:
    """A kept step of a rank.

    Attributes:
        rank: number of the rank.
        exemplar: the step.
        lanes: what its threads and streams did; nodes are indices into `keys`.
        keys: keys of paths.
    """

    rank: int
    exemplar: Exemplar
    lanes: tuple[Lane, ...]
    keys: Keys


def steps_of(profile: Profile, rank: int | None, keys: Keys) -> tuple[RankStep, ...]:
    """Return the kept steps of a profile.

    Args:
        profile: the profile.
        rank: its rank; None for joined ranks, whose steps have their own.
        keys: key of each node's path, shape (nodes,).
    """
    return tuple(_step(profile, each, rank, keys) for each in profile.exemplars)


def _step(profile: Profile, exemplar: Exemplar, rank: int | None, keys: Keys) -> RankStep:
    lanes = profile.lanes(exemplar)
    nodes = np.unique(np.concatenate([np.zeros(0, np.int64), *(lane.node for lane in lanes)]))
    moved = tuple(replace(lane, node=np.searchsorted(nodes, lane.node)) for lane in lanes)
    number = exemplar.rank if rank is None else rank
    return RankStep(number or 0, exemplar, moved, keys[nodes])


def chosen(steps: Iterable[RankStep]) -> tuple[RankStep, ...]:
    """Return the steps that a job keeps, in order of rank and number, each with its reasons in the job."""
    orders: dict[ExemplarReason, Callable[[RankStep], Any]] = {
        ExemplarReason.SLOW: lambda each: (-each.exemplar.duration_ns, *_place(each)),
        ExemplarReason.RANDOM: lambda each: hashlib.blake2b(repr(_place(each)).encode()).digest(),
        ExemplarReason.MARKED: _place,
    }
    given = list(steps)
    reasons: dict[tuple[int, int], ExemplarReason] = {}
    for reason, order in orders.items():
        meant = (each for each in given if reason in each.exemplar.reasons)
        for each in sorted(meant, key=order)[:MOST]:
            place = _place(each)
            reasons[place] = reasons.get(place, ExemplarReason(0)) | reason
    return tuple(
        replace(each, exemplar=replace(each.exemplar, reasons=reasons[_place(each)]))
        for each in sorted(given, key=_place)
        if _place(each) in reasons
    )


def _place(step: RankStep) -> tuple[int, int]:
    return step.rank, step.exemplar.number


def section(steps: Sequence[RankStep], keys: Keys) -> bytes | None:
    """Return the section of a job's kept steps, None without any.

    Args:
        steps: the steps.
        keys: key of each node's path, shape (nodes,).
    """
    if not steps:
        return None
    order = np.argsort(keys)
    messages = [_message(each, keys[order], order) for each in steps]
    return wire.encode("ExemplarTable", {"exemplars": messages, "node_count": len(keys)})


def _message(step: RankStep, ascending: Keys, order: npt.NDArray[np.intp]) -> dict[str, Any]:
    place = np.minimum(np.searchsorted(ascending, step.keys), len(ascending) - 1)
    is_known = ascending[place] == step.keys
    return {
        "number": step.exemplar.number,
        "begin_ns": step.exemplar.begin_ns,
        "end_ns": step.exemplar.end_ns,
        "reasons": int(step.exemplar.reasons),
        "rank": step.rank,
        "lanes": [_lane(each, order[place], is_known) for each in step.lanes],
    }


def _lane(
    lane: Lane, node_of: npt.NDArray[np.intp], is_known: npt.NDArray[np.bool_]
) -> dict[str, Any]:
    kept = is_known[lane.node]
    node, begin, duration = node_of[lane.node[kept]], lane.begin_ns[kept], lane.duration_ns[kept]
    # By end; of spans that end together the inner one first, as they ended.
    order = np.lexsort((-np.arange(len(begin)), begin + duration))
    columns = {
        "node_step": np.diff(node[order], prepend=0),
        "end_step": np.diff((begin + duration)[order], prepend=0),
        "duration_ns": duration[order],
    }
    return {
        "name": lane.name,
        "recorder": lane.recorder,
        "is_device": lane.device is not None,
        "device": lane.device or 0,
        "stream": lane.stream,
        "known_from_ns": lane.known_from_ns,
    } | {
        name: wire.column(kind, columns[name].astype(_DTYPES[kind]).tobytes())
        for name, kind in schema.SPAN_TYPES.items()
    }
