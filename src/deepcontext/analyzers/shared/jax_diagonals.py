"""Products with a matrix that is only a diagonal: `jnp.diag(v) @ a` in place of `v[:, None] * a`.

Recognised by an operation that writes the matrix from a vector, and a product at the same line or of the
matrix's name. Does not judge diagonals that are added to a matrix, nor programs outside of `jit`.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.jax_calls import at_line
from deepcontext.profiler.format.metric import DEVICE_TIME_NS, PROGRAM_LAUNCH_COUNT
from deepcontext.profiler.model.metric_values import exclusive_or_zeros, inclusive_or_zeros
from deepcontext.profiler.model.source import line_text
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.jax import operations as jax_operations

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.jax.operations import Operation
    from deepcontext.profiler.summaries.jax.programs import Source

# A comparison of row numbers and column numbers for equality, and what puts a vector there.
_NEEDED: Final = frozenset({"iota", "eq"})
_PUT: Final = frozenset({"select_n", "mul"})
_SHAPED: Final = frozenset({
    "broadcast",
    "broadcast_in_dim",
    "concatenate",
    "convert_element_type",
    "reshape",
    "squeeze",
    "stack",
})
_SHAPE: Final = re.compile(r"\w*?(\d+)\[([\d,]+)\]")
# Bytes moved for each byte of the matrix: what reads another matrix moves twice as many.
_MOST_MOVED: Final = 1.5
_LEAST_SHARE: Final = 0.1
_LEAST_LAUNCHES: Final = 5
_BACKWARD: Final = "backward"
_MAKERS: Final = frozenset({"diag", "diagflat", "eye", "identity"})
_PRODUCTS: Final = frozenset({"matmul", "dot", "einsum", "tensordot", "multi_dot", "dot_general"})


def products_with_diagonals(profile: Profile) -> list[Finding]:
    """Return a finding for each line whose products with a diagonal matrix take much time."""
    whole = source_locations.judged_total(profile, DEVICE_TIME_NS.name)
    if not whole or not source_locations.has_jax(profile):
        return []
    operations = jax_operations.operations(profile)
    dense = [each for each in operations if each.is_dense and each.source.file]
    found: dict[Source, list[Operation]] = {}
    written: dict[Source, set[Source]] = {}
    for built in filter(_is_diagonal, operations):
        for each in dense:
            is_same = (each.program, each.source.file) == (built.program, built.source.file)
            products = found.setdefault(each.source, [])
            if is_same and each not in products and _multiplies(profile, each.source, built.source):
                products.append(each)
                written.setdefault(each.source, set()).add(built.source)
    return [
        finding
        for source, products in found.items()
        for finding in _at(profile, source, products, written.get(source, set()))
    ]


def _is_diagonal(operation: Operation) -> bool:
    """Return whether the operation writes a square matrix from no more than a vector's values."""
    primitives = {member.primitive for member in operation.members}
    shape = _SHAPE.match(operation.shape)
    if shape is None or not operation.source.file or operation.phase == _BACKWARD:
        return False
    if not _NEEDED <= primitives <= _NEEDED | _PUT | _SHAPED or not primitives & _PUT:
        return False
    if [member.primitive for member in operation.members].count("iota") != len(_NEEDED):
        return False
    sizes = [int(each) for each in shape[2].split(",")]
    # The compiler may write a batch of matrices as one tall matrix.
    is_square = len(sizes) > 1 and sizes[-2] % sizes[-1] == 0 and sizes[-1] > 1
    size_bytes = int(np.prod(sizes)) * int(shape[1]) // 8
    return is_square and operation.bytes <= _MOST_MOVED * size_bytes


def _multiplies(profile: Profile, product: Source, built: Source) -> bool:
    """Return whether the product at one line is of the matrix that is written at another.

    Where the text of the lines is not known or no whole statement, only products of the same line are.
    """
    if product.function != built.function:
        return False
    start = profile.run.start_unix_ns or None
    statement = _statement(line_text(product.file, product.line, start))
    is_same = product.line == built.line
    if statement is None:
        return is_same
    names: set[str] = set()
    made = None if is_same else _statement(line_text(built.file, built.line, start))
    if isinstance(made, ast.Assign) and _is_made(made.value, names):
        names = {each.id for each in made.targets if isinstance(each, ast.Name)}
    return (is_same or bool(names)) and any(
        _is_made(each, names) for each in _operands_of_products(statement)
    )


def _statement(text: str) -> ast.stmt | None:
    try:
        function = ast.parse(f"def _():\n {text}").body[0]
    except SyntaxError:
        return None
    return function.body[0] if isinstance(function, ast.FunctionDef) else None


def _operands_of_products(statement: ast.stmt) -> Iterator[ast.expr]:
    for node in ast.walk(statement):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield from (node.left, node.right)
        elif isinstance(node, ast.Call) and _name_of(node.func) in _PRODUCTS:
            yield from node.args


def _is_made(node: ast.expr, names: set[str]) -> bool:
    """Return whether an expression is a diagonal matrix: made here, or of one of these names."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _is_made(node.left, names) or _is_made(node.right, names)
    if isinstance(node, ast.Attribute):  # its transpose
        return _is_made(node.value, names)
    if isinstance(node, ast.Call):
        return _name_of(node.func) in _MAKERS
    return isinstance(node, ast.Name) and node.id in names


def _name_of(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _at(
    profile: Profile, source: Source, products: Sequence[Operation], written: set[Source]
) -> list[Finding]:
    """Return the finding about products of one line with matrices of others, if they take much."""
    whole = source_locations.judged_total(profile, DEVICE_TIME_NS.name)
    spent = sum(each.device_ns for each in products)
    nodes = np.flatnonzero(at_line(profile, source.file, source.line))
    if not len(nodes) or spent < _LEAST_SHARE * whole:
        return []
    launches = exclusive_or_zeros(profile, PROGRAM_LAUNCH_COUNT.name)
    calls = profile.tree.nearest(launches > 0)[nodes]
    if launches[np.unique(calls[calls != NO_NODE])].sum() < _LEAST_LAUNCHES:
        return []
    nodes = nodes[np.argsort(-inclusive_or_zeros(profile, DEVICE_TIME_NS.name)[nodes])]
    where = source_locations.location_text(profile, profile.frame(int(nodes[0])))
    # Writing the matrix and the gradient of its zeros, too.
    lines = {source, *written}
    saved = sum(e.device_ns for e in jax_operations.operations(profile) if e.source in lines)
    return [
        Finding(
            id="jax_fusion",
            severity=Severity.of_share(spent / whole),
            title=(
                f"{where} multiplies with a matrix that is only a diagonal: its products take "
                f"{spent / whole:.0%} of the device time"
            ),
            nodes=tuple(nodes.tolist())[:8],
            evidence={
                "device_time_ns": spent,
                "time_share": spent / whole,
                "products_count": len(products),
            },
            gain=source_locations.bound(
                profile, DEVICE_TIME_NS.name, saved, "scaling by the diagonal costs nothing"
            ),
            advice=(
                "scale by broadcasting: v[:, None] * a for jnp.diag(v) @ a (rows), a * v for "
                "a @ jnp.diag(v) (columns); neither writes the matrix nor multiplies its zeros"
            ),
            misleads="most of the line's products are of other matrices",
        )
    ]
