"""How far the operators are from what the machine can do: lines and operators by time, with both rates.

Needs a profile recorded with ``--shapes``, and the machine's peaks for the share (`roof.py`). Covers
operators that only move data, too. What is not known is told with its time, and in no row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepcontext.profiler.format.metric import CALL_DURATION_NS, GPU_TIME_NS
from deepcontext.profiler.model.operator_inputs import without_inputs
from deepcontext.profiler.summaries.operator_work import operator_work, time_in_own_phase

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile_model import ProfileModel as Profile
    from deepcontext.profiler.summaries.operator_work import (
        LineWork,
        OperatorWork,
        ShapeWork,
        Work,
    )
    from deepcontext.profiler.summaries.roof import Roof


@dataclass(frozen=True, slots=True)
class Unknown:
    """Operators of one name whose work is not known.

    Attributes:
        name: of the operator, without inputs.
        calls: number of calls.
        time_ns: their time, ns.
    """

    name: str
    calls: int
    time_ns: int


@dataclass(frozen=True, slots=True)
class Efficiency:
    """All operators whose work is known.

    Attributes:
        total: of all of them.
        lines: by line of the user's code, most time first.
        line_count: number of such lines, of which `lines` has the first.
        operators: by name and shapes, most time first.
        operator_count: number of these.
        unknown: operators that may move data, of which nothing is known, most time first.
        unknown_share: their share of the time of known and unknown operators, 0 to 1.
        is_on_gpu: whether times are those of kernels.
        roof: the peaks that shares refer to, None where they are not known.
    """

    total: Work
    lines: tuple[LineWork, ...]
    line_count: int
    operators: tuple[ShapeWork, ...]
    operator_count: int
    unknown: tuple[Unknown, ...]
    unknown_share: float
    is_on_gpu: bool
    roof: Roof | None


def efficiency(profile: Profile, limit: int = 0) -> Efficiency | None:
    """Return how far operators are from the machine's peaks; None without shapes and types.

    Args:
        profile: the profile.
        limit: rows of each table, 0 for all.
    """
    work = operator_work(profile)
    if work is None or np.isnan(work.bytes).all():
        return None
    which = np.ones(len(work.nodes), np.bool_)
    lines = sorted(work.lines(profile, which), key=lambda row: -row.work.time_ns)
    shapes = sorted(work.shapes(profile, which), key=lambda row: -row.work.time_ns)
    total, unknown = work.total(which), _unknown(profile, work)
    missing_ns = sum(each.time_ns for each in unknown)
    return Efficiency(
        total=total,
        lines=tuple(lines[: limit or None]),
        line_count=len(lines),
        operators=tuple(shapes[: limit or None]),
        operator_count=len(shapes),
        unknown=unknown,
        unknown_share=missing_ns / ((missing_ns + total.time_ns) or 1),
        is_on_gpu=work.is_on_gpu,
        roof=work.roof,
    )


def _unknown(profile: Profile, work: OperatorWork) -> tuple[Unknown, ...]:
    nodes = work.uncounted
    calls = profile.counts(CALL_DURATION_NS.name)[nodes]
    if work.is_on_gpu:
        time = time_in_own_phase(profile, profile.exclusive(GPU_TIME_NS.name), nodes)
    else:
        time = profile.exclusive(CALL_DURATION_NS.name)[nodes]
    sums: dict[str, list[int]] = {}
    for node, count, time_ns in zip(nodes.tolist(), calls.tolist(), time.tolist(), strict=True):
        found = sums.setdefault(without_inputs(profile.frame(node).name), [0, 0])
        found[0] += count
        found[1] += time_ns
    rows = (Unknown(name, count, time_ns) for name, (count, time_ns) in sums.items() if count)
    return tuple(sorted(rows, key=lambda row: (-row.time_ns, row.name)))
