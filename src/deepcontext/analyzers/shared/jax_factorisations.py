"""Matrices that a program factorises more often than it makes them: one decomposition serves all solves.

Recognised by a factorisation that much of the device time goes to, in a program, or a loop of one, in which
nothing computes a matrix of that size as often: its caller passes the matrix in, or it comes from before the
loop. Does not judge batches of matrices, nor factorisations in a backward.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.jax_calls import at_line
from deepcontext.profiler.format.metric import DEVICE_TIME_NS
from deepcontext.profiler.model.metric_values import inclusive_or_zeros
from deepcontext.profiler.summaries.jax import operations as jax_operations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.jax.operations import Operation

_FACTORS: Final = {"cholesky": "cho_factor", "lu": "lu_factor"}
_SHAPE: Final = re.compile(r"\(?\w+\[(\d+),(\d+)\]")
_ELEMENTS: Final = re.compile(r"\w+\[([\d,]+)\]")
_SOLVES: Final = "triangular_solve"
# What a factorisation itself does around its kernel: copies, transposes and one triangle of the matrix.
_AROUND: Final = frozenset({
    "bitcast",
    "broadcast",
    "broadcast_in_dim",
    "cholesky",
    "convert_element_type",
    "copy",
    "ge",
    "iota",
    "le",
    "lu",
    "reshape",
    "select_n",
    "transpose",
    "triangular_solve",
})
# `jnp.linalg.cholesky` takes the mean of the matrix and its transpose.
_SYMMETRIC: Final = ("jit(cholesky)", frozenset({"add", "div", "mul"}))
_LEAST_ROWS: Final = 32
_LEAST_RUNS: Final = 20
_LEAST_SHARE: Final = 0.2
# Of the factorisation's runs, for what computes the matrix anew; both are sampled.
_AS_OFTEN: Final = 0.5


def repeated_factorisations(profile: Profile) -> list[Finding]:
    """Return a finding for each line that factorises a matrix again and again."""
    whole = source_locations.judged_total(profile, DEVICE_TIME_NS.name)
    if not whole or not source_locations.has_jax(profile):
        return []
    return [
        finding
        for operations in jax_operations.by_program(profile).values()
        for kernel in operations
        if _is_repeated(kernel, operations)
        for finding in _finding(profile, kernel, operations, whole)
    ]


def _is_repeated(kernel: Operation, operations: Sequence[Operation]) -> bool:
    """Return whether an operation factorises a matrix that nothing computes as often."""
    shape = _SHAPE.match(kernel.shape)
    is_kernel = not kernel.members and _primitive(kernel) in _FACTORS and kernel.source.file
    if shape is None or not is_kernel or kernel.phase == "backward":
        return False
    rows, columns = int(shape[1]), int(shape[2])
    if rows != columns or rows < _LEAST_ROWS or kernel.executions < _LEAST_RUNS:
        return False
    return not any(
        each is not kernel
        and each.executions >= _AS_OFTEN * kernel.executions
        and _elements(each) >= rows * columns
        and _computes(each)
        for each in operations
    )


def _computes(operation: Operation) -> bool:
    """Return whether an operation does more than a factorisation needs around its kernel."""
    primitives = {each.primitive for each in operation.members} or {_primitive(operation)}
    inner, allowed = _SYMMETRIC
    around = _AROUND | allowed if f"/{inner}/" in operation.op_name else _AROUND
    # A copy of an argument has the argument's name.
    primitives -= around | {"", operation.op_name}
    return any(not each.startswith("jit(") for each in primitives)


def _primitive(operation: Operation) -> str:
    return operation.op_name.rpartition("/")[2]


def _elements(operation: Operation) -> int:
    shape = _ELEMENTS.match(operation.shape.lstrip("("))
    return int(np.prod([int(each) for each in shape[1].split(",")])) if shape else 0


def _finding(
    profile: Profile, kernel: Operation, operations: Sequence[Operation], whole: int
) -> list[Finding]:
    source = kernel.source
    spent = sum(
        each.device_ns
        for each in operations
        if each.source == source and not each.op_name.endswith(_SOLVES) and not _computes(each)
    )
    nodes = np.flatnonzero(at_line(profile, source.file, source.line))
    if spent < _LEAST_SHARE * whole or not len(nodes):
        return []
    # A product with the inverse replaces the solves, too, and the loop that makes pivots a permutation.
    line = sum(each.device_ns for each in operations if each.source == source)
    nodes = nodes[np.argsort(-inclusive_or_zeros(profile, DEVICE_TIME_NS.name)[nodes])]
    where = source_locations.location_text(profile, profile.frame(int(nodes[0])))
    factor = _FACTORS[_primitive(kernel)]
    return [
        Finding(
            id="jax_fusion",
            # Whether a caller passes the same matrix each time is not known.
            severity=Severity.WARNING,
            title=(
                f"{where} factorises a matrix in each of {'about ' * kernel.is_estimated}"
                f"{kernel.executions:,} runs, and nothing beside it computes the matrix: "
                f"{spent / whole:.0%} of the device time"
            ),
            nodes=tuple(nodes[:8].tolist()),
            evidence={
                "device_time_ns": spent,
                "device_share": spent / whole,
                "runs_count": kernel.executions,
            },
            gain=source_locations.bound(
                profile, DEVICE_TIME_NS.name, line, "the matrix is inverted once"
            ),
            advice=(
                f"factorise the matrix once, before the loop (jax.scipy.linalg.{factor}), pass the result "
                f"in, and solve with it ({factor.replace('factor', 'solve')}); the inverse of a "
                "well-conditioned matrix serves many solves, too"
            ),
            misleads="each call gets another matrix",
        )
    ]
