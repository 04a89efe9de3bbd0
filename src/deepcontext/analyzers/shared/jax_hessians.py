"""JAX programs that compute a whole Hessian to multiply it by a vector.

Recognised by JAX's names of the transformations, a derivative of a gradient for each of many directions
(`vmap(jvp(... transpose(...)))`), and by a product that reads a square matrix and makes a vector. A program
that also solves with the matrix, adds to it, or returns it, needs the matrix.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.jax_calls import calls_of
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import DEVICE_TIME_NS
from deepcontext.profiler.model.metric_values import total
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.source import is_user_file
from deepcontext.profiler.summaries.jax import operations as jax_operations

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_LEAST_SHARE: Final = 0.15
# Of the vector. A product by jvp of grad takes as long as a few gradients, a Hessian as many as this.
_LEAST_SIZE: Final = 16
_GRADIENTS: Final = 4
# For each time that the matrix is computed; both are sampled.
_MOST_PRODUCTS: Final = 1.5
# Source: jax/_src/interpreters: names of transformations around an operation, the outermost first.
_OF_DIRECTIONS: Final = re.compile(r"vmap\((?:jvp|transpose)\((?:jvp|transpose|vmap)\(")
_VECTOR: Final = re.compile(r"[a-z]+(\d+)\[(\d+)\]")
# Vectors that a product reads or makes beside the matrix.
_MOST_VECTORS: Final = 8


@dataclass(frozen=True, slots=True)
class _Product:
    """A product of a square matrix and a vector: its operation, and the matrix's rows and bytes."""

    operation: jax_operations.Operation
    size: int
    matrix_bytes: int


def hessians_for_products(profile: Profile) -> list[Finding]:
    """Return a finding for each program that needs a Hessian's product only, and takes much of the time."""
    least = _LEAST_SHARE * total(profile, DEVICE_TIME_NS.name)
    results = jax_operations.result_sizes(profile)
    found = []
    for program, operations in jax_operations.by_program(profile).items():
        derivatives = [each for each in operations if _OF_DIRECTIONS.search(each.op_name)]
        spent = sum(each.device_ns for each in derivatives)
        if not spent or spent < least:
            continue
        product = _only_product(operations, results.get(program, 0))
        # A loop may multiply one matrix by many vectors.
        times = max(each.executions for each in derivatives)
        if product and product.operation.executions <= _MOST_PRODUCTS * times:
            found.append(_finding(profile, program, product, spent))
    return found


def _only_product(operations: list[jax_operations.Operation], result_bytes: int) -> _Product | None:
    """Return the product with the matrix, or None if anything else may read the matrix."""
    others = [each for each in operations if "vmap(" not in each.op_name]
    products = [product for each in others if (product := _product(each))]
    if not products:
        return None
    matrix_bytes = products[0].matrix_bytes
    # The directions, an identity matrix, may be an operation that reads nothing.
    is_read = any(
        each.bytes > matrix_bytes and each not in [one.operation for one in products]
        for each in others
    )
    return None if is_read or result_bytes >= matrix_bytes else products[0]


def _product(operation: jax_operations.Operation) -> _Product | None:
    match = _VECTOR.fullmatch(operation.shape)
    if not operation.is_dense or match is None or not is_user_file(operation.source.file):
        return None
    width, size = int(match[1]) // 8, int(match[2])
    matrix, vector = width * size * size, width * size
    is_square = matrix < operation.bytes <= matrix + _MOST_VECTORS * vector
    return _Product(operation, size, matrix) if size >= _LEAST_SIZE and is_square else None


def _finding(profile: Profile, program: str, product: _Product, spent: int) -> Finding:
    share = spent / total(profile, DEVICE_TIME_NS.name)
    at = product.operation.source
    where = source_locations.location_text(
        profile, Frame(FrameKind.PYTHON, at.function, at.file, at.line)
    )
    below = np.zeros(len(profile.tree), np.bool_)
    below[calls_of(profile, program)] = True
    named = source_locations.nodes_named(profile, FrameKind.HLO, {product.operation.name})
    nodes = Query(profile, named.mask() & profile.tree.below(below)).nodes()
    return Finding(
        id="jax_fusion",
        severity=Severity.of_share(share),
        title=(
            f"{program} computes a Hessian of {product.size} rows and multiplies it by a vector at {where}: "
            f"{share:.0%} of the device time"
        ),
        nodes=tuple(nodes[:8].tolist()),
        evidence={"device_time_ns": spent, "device_share": share, "rows_count": product.size},
        gain=source_locations.bound(
            profile,
            DEVICE_TIME_NS.name,
            round(spent * (1 - _GRADIENTS / product.size)),
            f"the product takes as long as {_GRADIENTS} gradients instead of {product.size}",
        ),
        advice=(
            "compute the product without the matrix: jax.jvp(jax.grad(function), (point,), (vector,))[1]; "
            "for several vectors, take jax.linearize(jax.grad(function), point) once"
        ),
        misleads="the same Hessian is multiplied by as many vectors as it has rows",
    )
