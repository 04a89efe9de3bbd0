"""Kernel fusion: many small operators where one operator would suffice.

Recognises an optimizer that walks over parameters one by one (`stepwise_optimizers.py`), hand-written
attention, a recurrent cell (`recurrent_cells.py`), a loop over small operators (`operator_loops.py`), a table
that each call builds again (`rebuilt_tables.py`), a loop that reads whole tensors for each class
(`masks_of_classes.py`), and chains of pointwise operators in one function. With a GPU, short kernels below
one function; with JAX, functions outside of `jit` that launch a program for each operation, and Python loops
under `jit` that become a program of many operations (`jax_unrolled.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import input_types, source_locations
from deepcontext.analyzers.shared.dense_targets import dense_targets
from deepcontext.analyzers.shared.jax_checks import checks_left_on
from deepcontext.analyzers.shared.jax_launches import small_launches
from deepcontext.analyzers.shared.jax_unrolled import unrolled_loops
from deepcontext.analyzers.shared.masks_of_classes import masks_of_classes
from deepcontext.analyzers.shared.model_runs import functions_with_single_samples
from deepcontext.analyzers.shared.operator_loops import loop_finding, operator_loops
from deepcontext.analyzers.shared.operator_names import (
    FUSED_ATTENTION,
    MATRIX_PRODUCTS,
    NATIVE_ATTENTION,
    POINTWISE,
    SOFTMAX,
)
from deepcontext.analyzers.shared.pair_differences import pair_differences
from deepcontext.analyzers.shared.rebuilt_tables import rebuilt_tables
from deepcontext.analyzers.shared.recurrent_cells import cell_finding, recurrent_cells
from deepcontext.analyzers.shared.stepwise_optimizers import stepwise_optimizers
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import HOST_TIME_NS
from deepcontext.profiler.model.metric_values import total
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.tree import NO_NODE

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.analyzers.finding import Gain
    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.profile import Profile

_HOST: Final = HOST_TIME_NS.name
_LEAST_SHARE: Final = 0.15
_LEAST_ATTENTION_SHARE: Final = 0.05
_LEAST_OPERATORS: Final = 5
_PRODUCTS_OF_ATTENTION: Final = 2
_ALLOCATED: Final = "alloc_bytes"
# A complex128, or a number with what a library allocates around it.
_MOST_BYTES_OF_NUMBERS: Final = 64
# Source: launching a kernel takes 5 to 10 us (NVIDIA, "Getting Started with CUDA Graphs", 2019).
_SHORT_KERNEL_NS: Final = 10_000


def _find(profile: Profile) -> list[Finding]:
    found: list[Finding] = []
    if source_locations.judged_total(profile, _HOST) and not total(
        profile, source_locations.DEVICE_TIME
    ):
        is_user = profile.is_user_code()
        found += stepwise_optimizers(profile)
        attention = _attention(profile, is_user)
        reported = {profile.frame(finding.nodes[0]) for finding in attention}
        found += attention
        # A loop over samples is told by `model_calls`, whatever the samples run through.
        sampled = functions_with_single_samples(profile)
        pointwise = Query(profile, _called_pointwise(profile).mask() & ~sampled)
        cells = recurrent_cells(profile, pointwise, is_user)
        found += [cell_finding(profile, cell) for cell in cells]
        others = pointwise.mask().copy()
        others[[node for cell in cells for node in cell.location.nodes]] = False
        # One function, one finding, whichever of its lines a finding names.
        in_cells = {_function(cell.location.frame) for cell in cells}
        loops = [
            loop
            for loop in operator_loops(profile, is_user)
            if _function(loop.frame) not in in_cells and not sampled[loop.nodes[0]]
        ]
        found += [loop_finding(profile, loop) for loop in loops]
        others[[node for loop in loops for node in loop.nodes]] = False
        again = [
            *rebuilt_tables(profile, is_user),
            *masks_of_classes(profile),
            *pair_differences(profile),
        ]
        found += again
        # Losses over dense targets are `cheaper_operator`'s.
        told = [*again, *dense_targets(profile)]
        others[source_locations.of_same_functions(profile, told)] = False
        # `precision` reports them, and in a narrower type they cost less.
        doubles = np.zeros(len(others), np.bool_)
        doubles[[node for nodes, _ in input_types.costly(profile, "f64") for node in nodes]] = True
        others[profile.tree.at_or_below(doubles)] = False
        found += _pointwise(profile, Query(profile, others), skip=bool(reported))
    if source_locations.judged_total(profile, _HOST) and total(
        profile, source_locations.JAX_LAUNCHES
    ):
        found += unrolled_loops(profile)
        # Checks of each launch are its cost; `settings` reports them.
        found += [] if checks_left_on(profile) else small_launches(profile)
    if source_locations.judged_total(profile, source_locations.GPU_TIME):
        found += _short_kernels(profile)
    return found


def _function(frame: Frame | None) -> tuple[str, str] | None:
    return None if frame is None else (frame.file, frame.name)


def _attention(profile: Profile, is_user: source_locations.Mask) -> list[Finding]:
    if source_locations.operators(profile, {FUSED_ATTENTION}).count():
        fused = source_locations.by_function(
            source_locations.operators(profile, {FUSED_ATTENTION}), _HOST, is_user=is_user
        )
    else:
        fused = []
    skip = {location.frame.name for location in fused if location.frame}
    parts = source_locations.operators(profile, MATRIX_PRODUCTS | SOFTMAX).phase("none", "forward")
    # A linear layer's product is no part of attention.
    parts = source_locations.without(
        parts,
        source_locations.operators(profile, {"aten::linear", "aten::addmm", NATIVE_ATTENTION}),
    )
    found = []
    whole = total(profile, _HOST)
    for location in source_locations.by_function(
        parts, _HOST, _LEAST_ATTENTION_SHARE * whole, is_user
    ):
        share = location.value / whole
        names = [source_locations.base_name(profile.frame(node).name) for node in location.nodes]
        products = sum(name in MATRIX_PRODUCTS for name in names)
        has_softmax = any(name in SOFTMAX for name in names)
        if not has_softmax or location.frame is None:
            continue
        if products < _PRODUCTS_OF_ATTENTION or location.frame.name in skip:
            continue
        found.append(
            Finding(
                id="kernel_fusion",
                severity=Severity.of_share(share),
                title=(
                    "hand-written attention (products and a softmax) at "
                    f"{source_locations.location_text(profile, location.frame)}"
                ),
                nodes=location.nodes[:8],
                evidence={
                    "attention_ns": location.value,
                    "attention_share": share,
                    "calls_count": location.count,
                },
                gain=source_locations.bound(
                    profile, _HOST, location.value, "this attention costs nothing"
                ),
                advice=(
                    "use torch.nn.functional.scaled_dot_product_attention (is_causal=True for a "
                    "causal mask), one operator that never writes the matrix of scores"
                ),
                misleads=(
                    "the program needs the scores, or changes them in a way that "
                    "scaled_dot_product_attention has no argument for (flex_attention may have); at "
                    "short lengths both cost the same"
                ),
            )
        )
    return found


def _called_pointwise(profile: Profile) -> Query:
    """Select the pointwise operators that Python code calls, except in optimizer and loader."""
    operators = source_locations.operators(profile, POINTWISE).phase("none", "forward", "other")
    operators = source_locations.apart(operators)
    # Operators inside an operator (a loss, a norm) belong to it, because Python called it once.
    is_operator = profile.is_kind(FrameKind.OPERATOR)
    return Query(profile, operators.mask() & ~is_operator[profile.tree.parent.clip(0)])


def _pointwise(profile: Profile, operators: Query, *, skip: bool) -> list[Finding]:
    """Report functions of the user or a library that call chains of pointwise operators."""
    softmax = source_locations.operators(profile, SOFTMAX).mask()
    found = []
    whole = total(profile, _HOST)
    python = profile.frames.kind == FrameKind.PYTHON
    for location in source_locations.by_function(operators, _HOST, _LEAST_SHARE * whole, python):
        only_attention = skip and any(softmax[node] for node in location.nodes)
        if location.frame is None or only_attention:
            continue
        names = _distinct(profile, location, python)
        if len(names) >= _LEAST_OPERATORS:
            found.append(_pointwise_finding(profile, location, names))
    return found


def _distinct(
    profile: Profile, location: source_locations.Location, python: source_locations.Mask
) -> list[str]:
    """Return the names of operators of a function, one for each line that calls it."""
    owners = source_locations.climb(profile, np.array(location.nodes), python)
    lines = profile.frames.line[profile.tree.frame[owners]].tolist()
    names = [source_locations.base_name(profile.frame(node).name) for node in location.nodes]
    return [name for _, name in dict.fromkeys(zip(lines, names, strict=True))]


def _pointwise_finding(
    profile: Profile, location: source_locations.Location, names: list[str]
) -> Finding:
    share = location.value / total(profile, _HOST)
    function = location.frame.name if location.frame else ""
    numbers = _are_single_numbers(profile, np.array(location.nodes))
    where = source_locations.location_text(profile, location.frame)
    caller = _caller_text(profile, location)
    shown = ", ".join(list(dict.fromkeys(names))[:6])
    return Finding(
        id="kernel_fusion",
        severity=Severity.of_share(share),
        title=(
            f"{len(names)} pointwise operators of one function, most at {where}{caller}, take "
            f"{share:.0%} of the time in operators{', for single numbers' if numbers else ''}"
        ),
        nodes=location.nodes[:8],
        evidence={
            "pointwise_ns": location.value,
            "pointwise_share": share,
            "operators_count": len(names),
            "calls_count": location.count,
            "mean_call_ns": location.value // max(location.count, 1),
            "operators": shown,
        },
        gain=_gain_of_numbers(profile, location)
        if numbers
        else source_locations.bound(
            profile,
            _HOST,
            # What they become reads and writes as one of them does, and is called as often.
            location.value - location.value // len(names),
            "these operators and their backward become one",
        ),
        advice=(
            "compute single numbers in Python (float, math), whose operations take a hundredth of an "
            "operator's call, and make a tensor of the result; or compute many of them at once, as with many "
            "environments of a simulation"
            if numbers
            else f"{source_locations.decorate('@torch.compile', function)}, which fuses chains of such "
            "operators into one kernel, or use torch's operator for the computation (layer_norm, "
            "rms_norm, gelu, cross_entropy with label_smoothing)"
        ),
        misleads=(
            "shapes change from call to call, so compiling costs more than it saves; the operators "
            "do not follow one another, as in a function that only calls other functions"
        ),
    )


def _gain_of_numbers(profile: Profile, location: source_locations.Location) -> Gain:
    """Return what it saves to compute single numbers in Python, with all that the function does with them."""
    operators = source_locations.outermost(
        Query(profile, profile.is_kind(FrameKind.OPERATOR))
    ).mask()
    inside = source_locations.in_functions_of(profile, np.array(location.nodes[:1]))
    nodes = np.flatnonzero(operators & inside)
    value = location.value
    if _are_single_numbers(profile, nodes):
        value = max(value, int(profile.inclusive(_HOST)[nodes].sum()))
    return source_locations.bound(profile, _HOST, value, "Python's own arithmetic costs nothing")


def _are_single_numbers(profile: Profile, nodes: npt.NDArray[np.int64]) -> bool:
    """Return whether operators without a backward make nothing but tensors of a few bytes."""
    rows = profile.metrics.get(_ALLOCATED)
    if rows is None or rows.maximum is None:
        return False
    tree = profile.tree
    inside = tree.at_or_below(np.isin(np.arange(len(tree)), nodes))
    if (tree.phase[inside] == Phase.BACKWARD).any():
        return False
    sizes = rows.maximum[inside[rows.node]]
    return bool(len(sizes)) and int(sizes.max()) <= _MOST_BYTES_OF_NUMBERS


def _caller_text(profile: Profile, location: source_locations.Location) -> str:
    """Return ``, called from train.py:7 (main)`` for a function of a library."""
    owners = source_locations.climb(profile, np.array(location.nodes[:1]), profile.is_user_code())
    caller = None if owners[0] == NO_NODE else profile.frame(int(owners[0]))
    if caller is None or location.frame is None or caller.file == location.frame.file:
        return ""
    return f", called from {source_locations.location_text(profile, caller)}"


def _short_kernels(profile: Profile) -> list[Finding]:
    metric = source_locations.GPU_TIME
    kernels = Query(profile).kind(FrameKind.KERNEL)
    whole = total(profile, metric)
    launches = profile.counts(metric)
    found = []
    for location in source_locations.by_function(kernels, metric, _LEAST_SHARE * whole):
        nodes = np.array(location.nodes)
        count = int(launches[nodes].sum())
        share = location.value / whole
        mean = location.value / max(count, 1)
        if len(nodes) < _LEAST_OPERATORS or mean > _SHORT_KERNEL_NS:
            continue
        where = source_locations.location_text(profile, location.frame)
        phase = "optimizer" if _mostly(profile, nodes, Phase.OPTIMIZER) else ""
        found.append(
            Finding(
                id="kernel_fusion",
                severity=Severity.of_share(share),
                title=f"{count:,} kernels of {mean / 1000:.1f} us around {where}",
                nodes=location.nodes[:8],
                evidence={
                    "gpu_time_ns": location.value,
                    "kernel_share": share,
                    "launches_count": count,
                    "mean_kernel_ns": int(mean),
                },
                gain=source_locations.bound(
                    profile,
                    metric,
                    location.value,
                    "these kernels cost nothing; even fused, they read and write once",
                ),
                advice=(
                    "make the optimizer fused (fused=True) or foreach"
                    if phase
                    else "compile the function (torch.compile, jax.jit), or replay it as a CUDA "
                    "graph (torch.compile with mode='reduce-overhead')"
                ),
                misleads="the kernels run while a longer kernel runs on another stream",
            )
        )
    return found


def _mostly(profile: Profile, nodes: source_locations.Ints, phase: Phase) -> bool:
    return bool((profile.tree.phase[nodes] == phase).mean() > 0.5)  # noqa: PLR2004  the majority


ANALYZER = Analyzer("kernel_fusion", "could one operator replace many small ones?", _find)
