"""Jacobians of many outputs by few inputs in reverse mode, which takes one backward pass for each output.

Recognised by JAX's names: a backward under `vmap` of a forward that is not, as `jax.jacrev` makes them. The
number of inputs is the size of the gradients that reductions and products make. Does not judge Jacobians by
arrays that no reduction makes, nor second derivatives (`jax_hessians.py`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.jax_calls import calls_of
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import DEVICE_TIME_NS
from deepcontext.profiler.model.metric_values import inclusive_or_zeros
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.source import line_text
from deepcontext.profiler.summaries.jax import operations as jax_operations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.jax.operations import Operation

# Source: jax/_src/interpreters: names of transformations around an operation, the outermost first.
_BACKWARD: Final = re.compile(r"/vmap\(transpose\(jvp\((?!.*(?:transpose|jvp)\()")
_FORWARD: Final = re.compile(r"/jvp\((?!.*(?:transpose|jvp)\()")
_FORWARD_OF_SAMPLES: Final = re.compile(r"/vmap\(jvp\(")
_REDUCES: Final = frozenset({"reduce_sum", "dot_general"})
_SHAPE: Final = re.compile(r"\w+\[([\d,]+)\]")
_LEAST_SHARE: Final = 0.15
_LEAST_OUTPUTS: Final = 32
# Forward mode takes one pass for each input.
_LEAST_TIMES_MORE: Final = 4
_LEAST_RUNS: Final = 5


def tall_jacobians(profile: Profile) -> list[Finding]:
    """Return a finding for each program whose Jacobian has many more outputs than inputs."""
    whole = source_locations.judged_total(profile, DEVICE_TIME_NS.name)
    if not whole or not source_locations.has_jax(profile):
        return []
    return [
        finding
        for program, operations in jax_operations.by_program(profile).items()
        for finding in _of_program(profile, program, operations, whole)
    ]


def _of_program(
    profile: Profile, program: str, operations: Sequence[Operation], whole: int
) -> list[Finding]:
    backward = [each for each in operations if _BACKWARD.search(each.op_name)]
    spent = sum(each.device_ns for each in backward)
    if spent < _LEAST_SHARE * whole or max(each.executions for each in backward) < _LEAST_RUNS:
        return []
    names = [each.op_name for each in operations]
    is_once = any(map(_FORWARD.search, names)) and not any(map(_FORWARD_OF_SAMPLES.search, names))
    if not is_once:
        return []
    sizes = [(_sizes(each), each) for each in backward]
    outputs = _commonest([(shape[0], each.device_ns) for shape, each in sizes if shape])
    rows = [(int(np.prod(shape[1:])), each) for shape, each in sizes if shape[:1] == [outputs]]
    reduced = [size for size, each in rows if _reduces(each)]
    most = outputs // _LEAST_TIMES_MORE
    if outputs < _LEAST_OUTPUTS or not reduced or max(reduced) > most:
        return []
    # Gradients of parts of an array are put together.
    inputs = max(size for size, _ in rows if size <= most)
    below = np.zeros(len(profile.tree), np.bool_)
    below[calls_of(profile, program)] = True
    named = source_locations.nodes_named(
        profile, FrameKind.HLO, {each.name for each in backward}
    ).mask()
    nodes = Query(profile, named & profile.tree.below(below)).nodes()
    if not len(nodes):
        return []
    nodes = nodes[np.argsort(-inclusive_or_zeros(profile, DEVICE_TIME_NS.name)[nodes])]
    asking = [_asking(profile, each) for each in nodes[:8].tolist()]
    where = source_locations.location_text(profile, profile.frame(asking[0]))
    return [
        Finding(
            id="jax_fusion",
            severity=Severity.of_share(spent / whole),
            title=(
                f"{where} computes a Jacobian of {outputs:,} outputs by {inputs:,} inputs in reverse "
                f"mode, one backward pass for each output: {spent / whole:.0%} of the device time"
            ),
            nodes=tuple(dict.fromkeys(asking)),
            evidence={
                "device_time_ns": spent,
                "device_share": spent / whole,
                "outputs_count": outputs,
                "inputs_count": inputs,
            },
            gain=source_locations.bound(
                profile,
                DEVICE_TIME_NS.name,
                round(spent * (1 - inputs / outputs)),
                "a forward pass for each input takes as long as a backward pass",
            ),
            advice=(
                "use jax.jacfwd (forward mode), which takes a pass for each input; where only products with "
                "the Jacobian are needed, jax.jvp and jax.vjp need no matrix"
            ),
            misleads="the Jacobian is also by an array as large as the outputs",
        )
    ]


def _asking(profile: Profile, node: int) -> int:
    """Return the node of the line above that asks for the Jacobian, as far as its text tells."""
    start = profile.run.start_unix_ns or None
    is_user = profile.is_user_code()[profile.tree.frame]
    lines = [each for each in profile.tree.path(node) if is_user[each]]
    for each in reversed(lines):
        frame = profile.frame(each)
        if "jacrev" in line_text(frame.file, frame.line, start):
            return each
    return lines[-1] if lines else node


def _commonest(weighted: Sequence[tuple[int, int]]) -> int:
    weights: dict[int, int] = {}
    for value, weight in weighted:
        weights[value] = weights.get(value, 0) + weight
    return max(weights, key=lambda each: weights[each], default=0)


def _sizes(operation: Operation) -> list[int]:
    match = _SHAPE.match(operation.shape)
    return [int(each) for each in match[1].split(",")] if match else []


def _reduces(operation: Operation) -> bool:
    return operation.op_name.rpartition("/")[2] in _REDUCES
