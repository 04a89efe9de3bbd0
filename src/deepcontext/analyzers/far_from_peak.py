"""Far from the peak: operators that take much time, far below what this machine can do, for a known reason.

Needs shapes and types (``--shapes``) and the machine's peaks (`summaries/roof.py`). Silent where shapes do
not tell a reason: a rate alone does not say what to change. Kernels' names tell one without shapes
(`unaligned_products`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.unaligned_products import unaligned_products
from deepcontext.profiler.format.metric import CALL_DURATION_NS
from deepcontext.profiler.model.metric_values import total
from deepcontext.profiler.model.operator_inputs import split_name
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.summaries.operator_work import operator_work

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepcontext.profiler.model.operator_inputs import Inputs
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.operator_work import OperatorWork

    Ints = source_locations.Ints
    Floats = source_locations.Floats
    Mask = source_locations.Mask

_LEAST_SHARE: Final = 0.10
# A shorter call is mostly its launch, whatever it computes.
_LEAST_CALL_NS: Final = 50_000
# The first calls of an operator prepare libraries and touch new memory.
_LEAST_CALLS: Final = 3
# Of the peak, in the fastest call: another program on the same cores cannot make all calls slow.
_FAR: Final = 0.10
_FAR_UNALIGNED: Final = 0.5
# A type is slow where another one, that holds all its values, is at least twice as fast.
_SLOW_TYPE: Final = 0.5
# Source: IEEE 754: f64 holds integers up to 2^53; f32 holds all values of f16 and bf16.
_HELD_BY: Final = {"i64": "f64", "i32": "f64", "f16": "f32", "bf16": "f32"}
_NAMES: Final = {
    "i64": "int64",
    "i32": "int32",
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
}
_SMALL: Final = 16
# Source: NVIDIA, "Matrix Multiplication Background User's Guide", section 3: tensor cores are used best
# where sizes are multiples of 16 bytes.
_ALIGNED_BYTES: Final = 16
_BYTES: Final = {"f16": 2, "bf16": 2, "i8": 1, "f8e4m3fn": 1, "f8e5m2": 1}
# Inputs at which the two matrices begin.
_PRODUCTS: Final = {
    "aten::mm": 0,
    "aten::bmm": 0,
    "aten::addmm": 1,
    "aten::baddbmm": 1,
    "aten::_addmm_activation": 1,
}


@dataclass(frozen=True, slots=True)
class _Reason:
    """Why operators are slow.

    Attributes:
        text: what they are, for the title: "products of int64 numbers".
        assumption: assumption of the bound.
        advice: what to do.
        misleads: when the advice is wrong.
    """

    text: str
    assumption: str
    advice: str
    misleads: str


def _find(profile: Profile) -> list[Finding]:
    work = operator_work(profile)
    metric = source_locations.cost_metric(profile)
    if work is None or work.roof is None or not metric:
        return unaligned_products(profile)
    fastest_ns = _fastest(profile, work)
    by_reason: dict[_Reason, list[tuple[int, float]]] = {}
    calls = np.maximum(work.calls, 1)
    judged = (work.flops > 0) & (work.calls >= _LEAST_CALLS) & (fastest_ns >= _LEAST_CALL_NS)
    for index in np.flatnonzero(judged).tolist():
        found = _reason(profile, work, index, float(fastest_ns[index] * calls[index]))
        if found is not None:
            reason, least_ns = found
            saved_ns = float(work.time_ns[index]) - least_ns
            by_reason.setdefault(reason, []).append((index, saved_ns))
    least_ns = _LEAST_SHARE * total(profile, metric)
    findings = [
        _finding(profile, work, metric, reason, dict(rows))
        for reason, rows in by_reason.items()
        if sum(int(work.time_ns[index]) for index, _ in rows) >= least_ns
    ]
    return findings or unaligned_products(profile)


def _fastest(profile: Profile, work: OperatorWork) -> Floats:
    """Return the time of the fastest call of each operator, ns; on a GPU the mean."""
    mean = work.time_ns / np.maximum(work.calls, 1)
    rows = profile.metrics[CALL_DURATION_NS.name]
    if work.is_on_gpu or rows.minimum is None:
        return np.asarray(mean, np.float64)
    shortest = np.zeros(len(profile.tree))
    shortest[rows.node] = rows.minimum
    return shortest[work.nodes]


def _reason(
    profile: Profile, work: OperatorWork, index: int, time_ns: float
) -> tuple[_Reason, float] | None:
    """Return why an operator is slow, and the time it needs without that; None if it is not known."""
    kind = work.types[index]
    flops = float(work.flops[index])
    rates = work.roof.peaks.flops_per_second if work.roof else {}
    better = _HELD_BY.get(kind, "")
    if 0 < rates.get(kind, 0.0) < _SLOW_TYPE * rates.get(better, 0.0):
        least_ns = flops / rates[better] * 1e9
        if time_ns * _SLOW_TYPE > least_ns:
            return _slow_type(kind, rates), least_ns
    least_ns = float(work.least_ns[index])
    name, inputs = split_name(profile.frame(int(work.nodes[index])).name)
    sizes = _matrix_sizes(name, inputs)
    if sizes is None or np.isnan(least_ns):
        return None
    if min(sizes) <= _SMALL and least_ns < _FAR * time_ns:
        return _small(sizes), least_ns
    odd = [size for size in sizes if size * _BYTES.get(kind, _ALIGNED_BYTES) % _ALIGNED_BYTES]
    if work.is_on_gpu and odd and least_ns < _FAR_UNALIGNED * time_ns:
        return _unaligned(kind, odd[0]), least_ns
    return None


def _matrix_sizes(name: str, inputs: Inputs) -> tuple[int, int, int] | None:
    """Return rows, inner size and columns of a product; None for other operators."""
    first = _PRODUCTS.get(name)
    if first is None or len(inputs.shapes) < first + 2:
        return None
    left, right = inputs.shapes[first], inputs.shapes[first + 1]
    if left is None or right is None:
        return None
    return left[-2], left[-1], right[-1]


def _slow_type(kind: str, rates: Mapping[str, float]) -> _Reason:
    better = _HELD_BY[kind]
    times = rates[better] / rates[kind]
    is_integer = kind.startswith("i")
    return _Reason(
        f"products of {_NAMES[kind]} numbers",
        f"they run at the peak of {_NAMES[better]}",
        f"multiply in {_NAMES[better]}: this machine does so {times:.3g} times as fast"
        + ("; it holds integers up to 2^53 exactly" if is_integer else ""),
        "sums beyond 2^53 must be exact"
        if is_integer
        else "memory is short, or the program is to run on a device with a fast path for the type",
    )


def _small(sizes: tuple[int, int, int]) -> _Reason:
    rows, inner, columns = sizes
    return _Reason(
        f"products of {rows} x {inner} with {inner} x {columns} matrices",
        "they run at the machine's peaks",
        "make one large product of them: where all have one factor, let the batch be rows of the other "
        "(reshape it, and multiply once, instead of expanding the factor); else merge the small dimension",
        "the factors all differ and are that small by nature",
    )


def _unaligned(kind: str, size: int) -> _Reason:
    step = _ALIGNED_BYTES // _BYTES[kind]
    return _Reason(
        f"products with a size of {size}",
        "they run at the machine's peaks",
        f"pad {size} to {-(-size // step) * step}, a multiple of {step} (for the best kernels of 64): tensor "
        "cores work on blocks",
        "the library already pads, or another limit than the size holds the kernel up",
    )


def _finding(
    profile: Profile,
    work: OperatorWork,
    metric: str,
    reason: _Reason,
    saved_ns: Mapping[int, float],
) -> Finding:
    indices = sorted(saved_ns, key=lambda index: (-work.time_ns[index], index))
    which = np.zeros(len(work.nodes), np.bool_)
    which[indices] = True
    done, whole = work.total(which), total(profile, metric)
    mask = np.zeros(len(profile.tree), np.bool_)
    mask[work.nodes[indices]] = True
    lines = source_locations.by_line(Query(profile, mask), metric)
    share = min(done.time_ns / whole, 1.0)
    place = source_locations.location_text(profile, lines[0].frame) if lines else "your code"
    more = f" and {len(lines) - 1} more lines" if len(lines) > 1 else ""
    return Finding(
        id="far_from_peak",
        severity=Severity.of_share(sum(saved_ns.values()) / whole),
        title=(
            f"{reason.text} take {share:.0%} of the time, at {done.flops_per_second / 1e9:.3g} GFLOP/s, "
            f"at {place}{more}"
        ),
        nodes=tuple(int(work.nodes[index]) for index in indices[:8]),
        evidence={
            "time_ns": done.time_ns,
            "time_share": share,
            "flops_per_second": done.flops_per_second,
            "bytes_per_second": done.bytes_per_second,
            "of_peak_share": done.of_peak or 0.0,
            "calls": done.calls,
            "operator": profile.frame(int(work.nodes[indices[0]])).name,
        },
        gain=source_locations.bound(
            profile, metric, round(sum(saved_ns.values())), reason.assumption
        ),
        advice=reason.advice,
        misleads=reason.misleads,
    )


ANALYZER = Analyzer("far_from_peak", "is an operator far from what the machine can do?", _find)
