"""Cheaper operators: a line computes more than what is used of its result, or by a formula that costs more.

Recognises decompositions and sorts of which the function keeps a few columns, inverses that are only
multiplied, products with diagonals and of integers, complex transforms of real signals, convolutions
(`shared/convolution_forms.py`), losses over dense targets (`shared/dense_targets.py`), and linear layers on
gathered rows (`shared/gathered_linear.py`). Invariant: the profile shows the use (what the same function
calls and allocates afterwards) or the size, not only the operator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.shared import allocations, source_locations
from deepcontext.analyzers.shared.cheaper_forms import (
    Calls,
    Cheaper,
    findings,
)
from deepcontext.analyzers.shared.convolution_forms import after_enlarging, large_kernels
from deepcontext.analyzers.shared.dense_targets import dense_targets
from deepcontext.analyzers.shared.gathered_linear import gathered_linear
from deepcontext.analyzers.shared.operator_names import MATRIX_PRODUCTS
from deepcontext.profiler.format.metric import (
    CALL_DURATION_NS,
    FLOAT_INPUTS,
    HOST_TIME_NS,
    INTEGER_INPUTS,
)
from deepcontext.profiler.model.metric_values import counts_or_zeros
from deepcontext.profiler.model.query import Query

if TYPE_CHECKING:
    from deepcontext.analyzers.finding import Finding
    from deepcontext.profiler.model.profile import Profile

    Ints = source_locations.Ints
    Mask = source_locations.Mask

# The result by the largest tensor that the function makes of it.
_LEAST_CUT: Final = 8
_TAKES_PART: Final = frozenset({"aten::slice", "aten::narrow"})
_SINGULAR: Final = Cheaper(
    "decomposes a whole matrix and keeps a few of its columns",
    "compute only these: torch.svd_lowrank(matrix, q=rank + 8, niter=4) or torch.pca_lowrank; "
    "full_matrices=False if all singular values are needed",
    "the singular values fall so slowly that a randomised method is not accurate enough",
)
_EIGEN: Final = Cheaper(
    "decomposes a whole matrix and keeps a few of its columns",
    "compute only these: torch.lobpcg(matrix, k=rank) for a symmetric positive definite matrix, "
    "torch.svd_lowrank otherwise",
    "the wanted eigenvalues lie so close together that iterations are not accurate enough",
)
_SORTED: Final = Cheaper(
    "sorts all values and keeps a few",
    "take only these: torch.topk(values, k), which does not sort the others",
    "the order of equal values matters: a stable sort keeps it, topk does not",
)
_CUT: Final = {
    "aten::linalg_svd": _SINGULAR,
    "aten::svd": _SINGULAR,
    "aten::linalg_eigh": _EIGEN,
    "aten::sort": _SORTED,
    "aten::argsort": _SORTED,
}
_INVERSES: Final = frozenset({"aten::linalg_inv", "aten::inverse", "aten::linalg_pinv"})
_PRODUCTS: Final = MATRIX_PRODUCTS | {"aten::mv", "aten::dot", "aten::linear"}
_SOLVED: Final = Cheaper(
    "inverts a matrix and multiplies by the inverse",
    "solve instead: torch.linalg.solve(matrix, right), or cholesky and cholesky_solve for a symmetric "
    "positive definite matrix; several right sides share one torch.linalg.lu_factor (lu_solve). This is also "
    "more accurate",
    "the inverse itself is the result",
)
_REAL: Final = Cheaper(
    "transforms real signals as complex numbers",
    "torch.fft.rfft and torch.fft.irfft(..., n=length): half of the work and memory, as the spectrum of a "
    "real signal is symmetric",
    "the signal is complex, and only the real part of the result is wanted",
)
_SCALED: Final = Cheaper(
    "multiplies by a diagonal as a whole matrix",
    "scale the rows and columns: v[:, None] * A in place of torch.diag(v) @ A, and A * v in place of "
    "A @ torch.diag(v)",
    "the products of the function are with other matrices",
)
_INTEGERS: Final = Cheaper(
    "multiplies matrices of integers, for which there is no fast library",
    "multiply floating-point numbers and convert the result: float32 is exact up to 2**24, float64 up to "
    "2**53",
    "the sums are too large for float64",
)
_DIAGONALS: Final = frozenset({"aten::diag_embed", "aten::diag"})
_INVERSE_TRANSFORMS: Final = frozenset({"aten::fft_ifft", "aten::fft_ifft2", "aten::fft_ifftn"})
_COMPLEX_TRANSFORMS: Final = _INVERSE_TRANSFORMS | {
    "aten::fft_fft",
    "aten::fft_fft2",
    "aten::fft_fftn",
}


def _find(profile: Profile) -> list[Finding]:
    if not source_locations.judged_total(profile, HOST_TIME_NS.name):
        return []
    if CALL_DURATION_NS.name not in profile.metrics:
        return []
    calls = Calls(profile)
    found = [
        *large_kernels(profile),
        *_inverses(profile, calls),
        *_complex_transforms(profile, calls),
        *_integers(profile),
    ]
    if allocations.ALLOCATED in profile.metrics:
        largest = allocations.largest_made(profile)
        found += _cut_results(profile, calls, largest)
        found += after_enlarging(profile, calls, largest)
        found += _diagonals(profile, calls, largest)
    return [*found, *dense_targets(profile), *gathered_linear(profile)]


def _cut_results(profile: Profile, calls: Calls, largest: Ints) -> list[Finding]:
    """Report operators whose large result the function cuts before it computes with it."""
    takes_part = calls.of(_TAKES_PART)
    found = []
    for name, cheaper in _CUT.items():
        costly = calls.of({name})
        chosen = np.zeros(len(profile.tree), np.bool_)
        for function in calls.functions(costly):
            own = costly & (calls.function == function)
            size = int(largest[own].max())
            others = calls.called & (calls.function == function) & ~own
            made = int(largest[others].max(initial=0))
            if made * _LEAST_CUT <= size and calls.count(takes_part, function) >= calls.count(
                costly, function
            ):
                chosen |= own
        found += findings(profile, chosen, cheaper)
    return found


def _inverses(profile: Profile, calls: Calls) -> list[Finding]:
    """Report functions that invert a matrix, and multiply at least as often."""
    inverts, multiplies = calls.of(_INVERSES), calls.of(_PRODUCTS)
    chosen = np.zeros(len(profile.tree), np.bool_)
    for function in calls.functions(inverts):
        if calls.count(multiplies, function) >= calls.count(inverts, function):
            chosen |= inverts & (calls.function == function)
    return findings(profile, chosen, _SOLVED)


def _complex_transforms(profile: Profile, calls: Calls) -> list[Finding]:
    """Report functions that transform back, and take the real part of the result."""
    back, real = calls.of(_INVERSE_TRANSFORMS), calls.of({"aten::real"})
    chosen = np.zeros(len(profile.tree), np.bool_)
    transforms = calls.of(_COMPLEX_TRANSFORMS)
    for function in calls.functions(back & np.isin(calls.function, calls.function[real])):
        if calls.count(real, function) >= calls.count(back, function):
            chosen |= transforms & (calls.function == function)
    return findings(profile, chosen, _REAL)


def _integers(profile: Profile) -> list[Finding]:
    """Report matrix products whose inputs were integers whenever a window met them."""
    products = source_locations.operators(profile, _PRODUCTS | {"aten::addmm"}).mask()
    integers = counts_or_zeros(profile, INTEGER_INPUTS.name) > 0
    floats = counts_or_zeros(profile, FLOAT_INPUTS.name) > 0
    outermost = source_locations.outermost(Query(profile, products)).mask()
    tree = profile.tree
    chosen = outermost & tree.at_or_above(products & integers)
    return findings(profile, chosen & ~tree.at_or_above(products & floats), _INTEGERS)


def _diagonals(profile: Profile, calls: Calls, largest: Ints) -> list[Finding]:
    """Report products in functions that make a matrix of a diagonal, and only multiply by it."""
    embeds = source_locations.operators(profile, {"aten::diag_embed"}).mask()
    makes = calls.of(_DIAGONALS) & profile.tree.at_or_above(embeds)
    multiplies = calls.of(_PRODUCTS)
    chosen = np.zeros(len(profile.tree), np.bool_)
    for function in calls.functions(makes):
        own = calls.called & (calls.function == function)
        size = int(largest[own & makes].max())
        others = own & ~makes & ~multiplies
        # Another operator with a result of this size may fill or add to the matrix.
        if not (largest[others] >= size).any() and calls.count(multiplies, function) >= calls.count(
            makes, function
        ):
            chosen |= own & multiplies
    return findings(profile, chosen, _SCALED)


ANALYZER = Analyzer(
    "cheaper_operator", "does a cheaper operator compute what is used of a result?", _find
)
