"""Matrices that are known to be mostly zeros, and are computed with as if they were full.

A diagonal that a function makes a matrix of and then factorises, and a sparse matrix that is made dense and
multiplied. Silent where the function also makes other matrices of this size, or products, because the
matrix may then be full. Does not judge padding (`padding.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.called_operators import (
    NO_FUNCTION,
    called_by_user,
    functions_of_nodes,
)
from deepcontext.analyzers.shared.operator_names import DENSE, MATRIX_PRODUCTS
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros, inclusive_or_zeros, total
from deepcontext.profiler.model.query import Query

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

    Mask = source_locations.Mask

_HOST: Final = HOST_TIME_NS.name
_ALLOCATED: Final = "alloc_bytes"
_LEAST_SHARE: Final = 0.10
_DIAGONALS: Final = frozenset({"aten::diag_embed", "aten::diag"})
_FACTORISES: Final = frozenset(
    f"aten::{name}"
    for name in (
        "linalg_cholesky",
        "linalg_cholesky_ex",
        "linalg_inv",
        "linalg_inv_ex",
        "linalg_eigh",
        "linalg_slogdet",
        "linalg_solve",
        "linalg_solve_ex",
    )
)
# Change a part of a matrix in place.
_FILLS: Final = frozenset(
    f"aten::{name}" for name in ("add_", "sub_", "copy_", "fill_", "index_put_", "diagonal", "tril")
)
_GAUSSIAN: Final = "MultivariateNormal."
# Of the time in operators, for products that the program's own lines call.
_LEAST_PRODUCTS: Final = 0.25
# A matrix of 1000 x 1000 in float32: smaller ones are multiplied in microseconds.
_LEAST_DENSE_BYTES: Final = 4_000_000
# Joining the entries takes 20 bytes for each (two int64 and a float32) or more: so at most a fiftieth of the
# numbers, of 4 bytes each, is not zero.
_LEAST_OF_JOINED: Final = 10


def work_on_zeros(profile: Profile) -> list[Finding]:
    """Return findings about matrices that are mostly zeros, costliest first."""
    if not source_locations.judged_total(profile, _HOST) or _ALLOCATED not in profile.metrics:
        return []
    return [*_diagonals(profile), *_dense(profile)]


@dataclass(frozen=True, slots=True)
class _Calls:
    """The operators that the program's own functions call themselves.

    Attributes:
        function: number of the user's function around each node.
        called: which nodes the user's code calls.
        bytes_a_call: what an operator allocates in a call, with all below it but the backward.
    """

    function: source_locations.Ints
    called: Mask
    bytes_a_call: source_locations.Floats

    @classmethod
    def of(cls, profile: Profile) -> _Calls:
        calls = np.maximum(counts_or_zeros(profile, CALL_DURATION_NS.name), 1)
        return cls(
            functions_of_nodes(profile),
            called_by_user(profile) & profile.is_kind(FrameKind.OPERATOR),
            source_locations.forward_inclusive(profile, _ALLOCATED) / calls,
        )


def _diagonals(profile: Profile) -> list[Finding]:
    """Report functions that make a matrix of a diagonal and factorise it."""
    calls = _Calls.of(profile)
    embeds = source_locations.operators(profile, {"aten::diag_embed"}).mask()
    makes = source_locations.operators(profile, _DIAGONALS).mask() & calls.called
    makes &= profile.tree.at_or_above(embeds)
    factorises = source_locations.operators(profile, _FACTORISES).mask()
    both = np.intersect1d(calls.function[makes], calls.function[factorises])
    functions = [
        each
        for each in both.tolist()
        if each != NO_FUNCTION and _is_only_diagonal(profile, calls, makes, each)
    ]
    of_diagonals = factorises & np.isin(calls.function, functions)
    if not of_diagonals.any():
        return []
    gaussians = source_locations.nodes_named(
        profile, FrameKind.PYTHON, lambda name: name.startswith(_GAUSSIAN)
    ).mask()
    in_gaussians = factorises & profile.tree.below(gaussians)
    wasted = of_diagonals
    # All of a distribution's work is with the matrix, if each distribution has a diagonal one.
    if not (in_gaussians & ~of_diagonals).any():
        wasted = of_diagonals | gaussians
    spent = source_locations.outermost(Query(profile, wasted))
    value = spent.total(_HOST, inclusive=True)
    if value < _LEAST_SHARE * total(profile, _HOST):
        return []
    places = source_locations.by_line(Query(profile, of_diagonals), _HOST)
    return [_diagonal_finding(profile, places[0], value, is_gaussian=bool(in_gaussians.any()))]


def _is_only_diagonal(profile: Profile, calls: _Calls, makes: Mask, function: int) -> bool:
    """Return whether nothing else in a function may fill the rest of the matrix."""
    here = calls.called & (calls.function == function)
    size = calls.bytes_a_call[here & makes].min(initial=np.inf)
    others = np.flatnonzero(here & ~profile.tree.at_or_below(makes))
    names = {source_locations.base_name(profile.frame(node).name) for node in others.tolist()}
    if names & (DENSE | _FILLS):
        return False
    factorises = source_locations.operators(profile, _FACTORISES).mask()
    return not (calls.bytes_a_call[others[~factorises[others]]] >= size).any()


def _diagonal_finding(
    profile: Profile, place: source_locations.Location, value: int, *, is_gaussian: bool
) -> Finding:
    share = value / total(profile, _HOST)
    where = source_locations.location_text(profile, place.frame)
    return Finding(
        id="padding",
        severity=Severity.of_share(share),
        title=(
            f"a diagonal is made a matrix and factorised at {where}: work on zeros, {share:.0%} of the "
            "time in operators"
        ),
        nodes=place.nodes[:8],
        evidence={"zeros_ns": value, "zeros_share": share, "calls_count": place.count},
        gain=source_locations.bound(profile, _HOST, value, "work on the diagonal costs nothing"),
        advice=(
            "independent normals need no covariance matrix: torch.distributions.Independent(Normal(mean, "
            "std), 1) has the same log_prob, entropy and samples; a lower triangle that is known is given as "
            "scale_tril"
            if is_gaussian
            else "compute on the diagonal itself: its root, its reciprocal, the sum of its logarithms, a "
            "division in place of a solve"
        ),
        misleads="another function fills the rest of the matrix before it is factorised",
    )


def _dense(profile: Profile) -> list[Finding]:
    """Report a sparse matrix that is made dense once and then multiplied."""
    calls = _Calls.of(profile)
    made = source_locations.operators(profile, {"aten::to_dense"}).mask() & calls.called
    joined = source_locations.operators(profile, {"aten::coalesce"}).mask() & calls.called
    kept = inclusive_or_zeros(profile, "peak_bytes")
    matrices = []
    for node in np.flatnonzero(made).tolist():
        size = calls.bytes_a_call[node]
        entries = calls.bytes_a_call[joined & (calls.function == calls.function[node])].max(
            initial=0
        )
        # What is in use when the program needs most memory, is used for long.
        is_kept = kept[node] >= size >= _LEAST_DENSE_BYTES
        if is_kept and 0 < _LEAST_OF_JOINED * entries <= size:
            matrices.append(node)
    products = source_locations.operators(profile, MATRIX_PRODUCTS).mask() & calls.called
    value = source_locations.outermost(Query(profile, products)).total(_HOST, inclusive=True)
    if not matrices or value < _LEAST_PRODUCTS * total(profile, _HOST):
        return []
    return [_dense_finding(profile, matrices, value, int(calls.bytes_a_call[matrices].sum()))]


def _dense_finding(profile: Profile, matrices: list[int], value: int, size: int) -> Finding:
    share = value / total(profile, _HOST)
    owner = source_locations.climb(profile, np.array(matrices[:1]), profile.is_user_code())
    where = source_locations.location_text(profile, profile.frame(int(owner[0])))
    return Finding(
        id="padding",
        severity=Severity.of_share(share),
        title=(
            f"a sparse matrix is made dense at {where}, although at most one in fifty of its numbers is "
            f"not zero; products take {share:.0%} of the time in operators"
        ),
        nodes=tuple(matrices[:8]),
        evidence={"products_ns": value, "products_share": share, "dense_bytes": size},
        gain=source_locations.bound(
            profile, _HOST, value, "all products of the program's own lines are with this matrix"
        ),
        advice=(
            "keep it sparse: matrix.to_sparse_csr() @ tensor multiplies only what is not zero, with a "
            "backward; or gather the rows of the edges and add them up (index_add_, scatter_add_)"
        ),
        misleads="the products are with other matrices; the dense matrix is small, or changed in place",
    )
