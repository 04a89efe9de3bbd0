"""How much the operators of PyTorch compute, and how fast: by source line, and by operator and shapes.

Needs a profile recorded with ``--shapes``. Counts products, convolutions, attention and recurrent
layers (`model/flops.py`). `efficiency.py` also has the operators that only move data.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.metric import CALL_DURATION_NS
from deepcontext.profiler.model.operator_inputs import without_inputs
from deepcontext.profiler.model.run_info import ALL_RANKS
from deepcontext.profiler.summaries.operator_work import flops_of, operator_work
from deepcontext.profiler.summaries.setup_time import setup_time
from deepcontext.profiler.summaries.steps import step_count, step_times

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from deepcontext.profiler.model.profile_model import ProfileModel as Profile
    from deepcontext.profiler.summaries.operator_work import (
        LineWork,
        OperatorWork,
        ShapeWork,
        Work,
    )
    from deepcontext.profiler.summaries.roof import Roof

# The rate of an operator with fewer operations, of a few short calls, says little.
_LEAST_SHARE: Final = 0.01


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """The arithmetic of a run.

    Attributes:
        total: of all counted operators.
        lines: of lines of the user's code, most operations first.
        line_count: number of such lines; `lines` has the first.
        operators: by name and shapes, most operations first.
        operator_count: number of these.
        fastest_flops_per_second: the highest rate of one operator and its shapes that has at least a
            hundredth of all operations, 0 without times: what this machine attained in this run.
        unknown: calls of operators that multiply matrices whose sizes are not known, by name.
        steps: number of the program's steps, 0 if not known.
        step_ns: mean time of a step, ns, 0 if not known.
        mfu: model FLOPs utilization: share of a step's time in which the machine does the step's
            operations at its peak for their types; None without steps, or without peaks.
        is_on_gpu: whether times are times of kernels.
        roof: the peaks that shares refer to, None where they are not known.
    """

    total: Work
    lines: tuple[LineWork, ...]
    line_count: int
    operators: tuple[ShapeWork, ...]
    operator_count: int
    fastest_flops_per_second: float
    unknown: Mapping[str, int]
    steps: int
    step_ns: float
    mfu: float | None
    is_on_gpu: bool
    roof: Roof | None


def arithmetic(profile: Profile, limit: int = 0) -> Arithmetic | None:
    """Return the arithmetic of a run; None without shapes, or where nothing multiplies.

    Args:
        profile: the profile.
        limit: rows of each table, 0 for all.
    """
    work = operator_work(profile)
    if work is None:
        return None
    found = flops_of(profile)
    if not len(found.nodes) and not len(found.unknown):
        return None
    which = np.isin(work.nodes, found.nodes)
    lines = [row for row in work.lines(profile, which) if row.work.flops > 0]
    shapes = [row for row in work.shapes(profile, which) if row.work.flops > 0]
    lines.sort(key=lambda row: -row.work.flops)
    shapes.sort(key=lambda row: -row.work.flops)
    total = work.total(which)
    return Arithmetic(
        total=total,
        lines=tuple(lines[: limit or None]),
        line_count=len(lines),
        operators=tuple(shapes[: limit or None]),
        operator_count=len(shapes),
        fastest_flops_per_second=max(
            (
                each.work.flops_per_second
                for each in shapes
                if each.work.flops >= _LEAST_SHARE * total.flops
            ),
            default=0.0,
        ),
        unknown=_unknown(profile, found.unknown),
        steps=step_count(profile),
        step_ns=_step_ns(profile),
        mfu=_utilization(profile, work),
        is_on_gpu=work.is_on_gpu,
        roof=work.roof,
    )


def _unknown(profile: Profile, nodes: npt.NDArray[np.int64]) -> Mapping[str, int]:
    calls: Counter[str] = Counter()
    counts = profile.counts(CALL_DURATION_NS.name)[nodes]
    for node, count in zip(nodes.tolist(), counts.tolist(), strict=True):
        calls[without_inputs(profile.frame(node).name)] += count
    return calls


def _utilization(profile: Profile, work: OperatorWork) -> float | None:
    """Return the model FLOPs utilization.

    Source: Chowdhery et al., "PaLM", 2022, appendix B; here with the operations that ran, recomputed ones
    included, each against the peak of its type.
    """
    step_ns, steps = _step_ns(profile), step_count(profile)
    if work.roof is None or not step_ns or not steps or not work.flops.any():
        return None
    nothing = np.zeros(len(work.nodes))
    computing = work.roof.least_ns(work.flops, nothing, work.types)
    if np.isnan(computing).any():
        return None
    return float(computing.sum()) / steps / step_ns


def _step_ns(profile: Profile) -> float:
    """Return the time of a step: between two marks, or a part of the time worked; 0 if not known."""
    if profile.run.rank == ALL_RANKS:
        return 0.0
    between = step_times(profile)
    if between is not None:
        return between.mean
    time, steps = setup_time(profile), step_count(profile)
    return time.working_ns / steps if time is not None and steps else 0.0
