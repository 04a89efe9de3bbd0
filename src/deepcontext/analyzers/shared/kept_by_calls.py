"""Tensors of past calls of a model that a program without steps keeps: in lists, closures, exceptions.

Counted is what grew from call to call and never fell, in many pieces. Does not judge results that one
operator joins afterwards, or that become arrays of NumPy, because a program collects those on purpose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import held_tensors, source_locations
from deepcontext.analyzers.shared.called_operators import called_by_user
from deepcontext.analyzers.shared.operator_names import JOINS
from deepcontext.profiler.format.metric import CALL_DURATION_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.summaries import memory as memory_summary

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_FEWEST_CALLS: Final = 16
# Of all memory at the peak. Growth is counted over half to three quarters of the calls.
_LEAST_SHARE: Final = 0.25
_LEAST_JOINED: Final = 0.5
# Called by Tensor.numpy(). Source: tensor_to_numpy, torch/csrc/utils/tensor_numpy.cpp.
_TO_NUMPY: Final = frozenset({"aten::resolve_neg"})
_LEAST_ARRAYS: Final = 0.5


def kept_by_calls(profile: Profile, prefix: str, peak: int) -> list[Finding]:
    """Return at most one finding, about the line whose tensors most is kept of.

    Args:
        profile: the profile.
        prefix: "" for the memory of the host, "gpu_" for that of devices.
        peak: most bytes held at once.
    """
    use, metric = memory_summary.memory_use(profile), f"{prefix}growth_bytes"
    if use is None or use.step_kind != "call" or use.growth_steps < _FEWEST_CALLS:
        return []
    if metric not in profile.metrics:
        return []
    grown = memory_summary.grown_lines(profile, prefix)
    steady = grown.rows(profile.frames, np.flatnonzero(grown.is_steady()))
    calls = {(each.file, each.line): each.grown_steps for each in steady}
    growing = Query(profile).where(**{f"{metric}__gt": 0})
    lines = [
        each
        for each in source_locations.by_line(growing, metric)
        if each.frame
        and (found := calls.get((each.frame.file, each.frame.line)))
        and _pieces(profile, f"{prefix}peak_bytes", each) >= found
    ]
    size = sum(each.value for each in lines)
    if size < _LEAST_SHARE * peak or _is_joined(profile, f"{prefix}alloc_bytes", size):
        return []
    if _arrays(profile) >= _LEAST_ARRAYS * _pieces(profile, f"{prefix}peak_bytes", lines[0]):
        return []
    return [_finding(profile, prefix, lines, (size, peak))]


def _pieces(profile: Profile, metric: str, line: source_locations.Location) -> int:
    """Return how many tensors of a line were held at the peak: one that grows is a cache."""
    pieces = profile.tree.inclusive(profile.counts(metric))
    return int(pieces[list(line.nodes)].sum())


def _arrays(profile: Profile) -> int:
    """Return how many tensors the user's code made arrays of NumPy of: they share memory."""
    made = source_locations.operators(profile, _TO_NUMPY).mask() & called_by_user(profile)
    return int(counts_or_zeros(profile, CALL_DURATION_NS.name)[made].sum())


def _is_joined(profile: Profile, metric: str, size_bytes: int) -> bool:
    """Return whether one result of `cat` or `stack` is as large as what was kept."""
    rows = profile.metrics[metric]
    if rows.maximum is None:
        return False
    joins = profile.tree.at_or_below(source_locations.operators(profile, JOINS).mask())
    largest = int(rows.maximum[joins[rows.node]].max(initial=0))
    return largest >= _LEAST_JOINED * size_bytes


def _finding(
    profile: Profile,
    prefix: str,
    lines: list[source_locations.Location],
    figures: tuple[int, int],
) -> Finding:
    size, peak = figures
    frame = lines[0].frame
    holder = held_tensors.holder_of(profile, frame.file, frame.line) if frame else None
    others = f" and {len(lines) - 1} more lines" if len(lines) > 1 else ""
    held = f"; {held_tensors.text(holder)}" if holder else ""
    share = min(size / peak, 1.0)
    return Finding(
        id="memory",
        severity=Severity.WARNING,
        title=(
            f"{'device ' if prefix else ''}memory allocated at "
            f"{source_locations.location_text(profile, frame)}{others} grew from call to call of "
            f"the model and was not freed: {share:.0%} of the peak{held}"
        ),
        nodes=tuple(node for each in lines for node in each.nodes[:4])[:8],
        evidence={
            f"{prefix}growth_bytes": size,
            "peak_share": share,
            **(held_tensors.evidence(holder) if holder else {}),
        },
        gain=Gain(f"{prefix}peak_bytes", size, share, "nothing of past calls is kept"),
        advice=held_tensors.advice(holder) if holder else _ADVICE,
        misleads="the program needs all results at once, or the calls fill a cache that is bounded",
    )


_ADVICE: Final = (
    "keep only what is needed of each call (a number, a slice that is copied with .clone()): a list, a "
    "closure or an exception, whose traceback holds the variables of its functions, keeps the tensors of "
    "past calls; a profile with --holders names the object"
)
