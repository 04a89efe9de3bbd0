"""Cheaper operators: a line computes more than what is used of its result, or by a formula that costs more.

Recognises decompositions and sorts of which the function keeps a few columns, inverses that are only
multiplied, and convolutions with long kernels. Invariant: the profile shows the use (what the same function
calls and allocates afterwards) or the size, not only the operator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.called_operators import (
    NO_FUNCTION,
    called_by_user,
    functions_of_nodes,
)
from deepcontext.analyzers.shared.operator_names import MATRIX_PRODUCTS
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import CALL_DURATION_NS, CONVOLUTION_TAPS, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros, total
from deepcontext.profiler.model.query import Query

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext.profiler.model.profile import Profile

    Ints = source_locations.Ints
    Mask = source_locations.Mask

_ALLOCATED: Final = "alloc_bytes"
_LEAST_SHARE: Final = 0.1
_LEAST_NS: Final = 50_000_000
# The result by the largest tensor that the function makes of it.
_LEAST_CUT: Final = 8
_TAKES_PART: Final = frozenset({"aten::slice", "aten::narrow"})
# Source: cost of a direct convolution is samples x taps, by FFT some 10 x samples x log2(samples).
_LEAST_TAPS: Final = 512


class _Cheaper(NamedTuple):
    """What to use in place of an operator.

    Attributes:
        what: in the title, after the line.
        advice: what to write.
        misleads: when not.
    """

    what: str
    advice: str
    misleads: str


_SINGULAR: Final = _Cheaper(
    "decomposes a whole matrix and keeps a few of its columns",
    "compute only these: torch.svd_lowrank(matrix, q=rank + 8, niter=4) or torch.pca_lowrank; "
    "full_matrices=False if all singular values are needed",
    "the singular values fall so slowly that a randomised method is not accurate enough",
)
_EIGEN: Final = _Cheaper(
    "decomposes a whole matrix and keeps a few of its columns",
    "compute only these: torch.lobpcg(matrix, k=rank) for a symmetric positive definite matrix, "
    "torch.svd_lowrank otherwise",
    "the wanted eigenvalues lie so close together that iterations are not accurate enough",
)
_SORTED: Final = _Cheaper(
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
_SOLVED: Final = _Cheaper(
    "inverts a matrix and multiplies by the inverse",
    "solve instead: torch.linalg.solve(matrix, right), or cholesky and cholesky_solve for a symmetric "
    "positive definite matrix; several right sides share one torch.linalg.lu_factor (lu_solve). This is also "
    "more accurate",
    "the inverse itself is the result",
)
_BY_FFT: Final = _Cheaper(
    "convolves with a kernel of {taps:,} taps directly",
    "convolve by FFT: torch.fft.irfft(torch.fft.rfft(signal, n=n) * torch.fft.rfft(kernel, n=n), n=n) with "
    "n = signal + kernel - 1 (torchaudio.functional.fftconvolve); a correlation flips the kernel",
    "the stride is nearly as large as the kernel, so that each value is used a few times only",
)


def _find(profile: Profile) -> list[Finding]:
    if not source_locations.judged_total(profile, HOST_TIME_NS.name):
        return []
    if CALL_DURATION_NS.name not in profile.metrics:
        return []
    calls = _Calls(profile)
    found = [*_long_kernels(profile), *_inverses(profile, calls)]
    if _ALLOCATED in profile.metrics:
        found += _cut_results(profile, calls)
    return found


class _Calls:
    """The operators that functions of the user's code call themselves, forward."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.function = functions_of_nodes(profile)
        called = called_by_user(profile) & profile.is_kind(FrameKind.OPERATOR)
        self.called = called & (profile.tree.phase != Phase.BACKWARD)
        self.number = counts_or_zeros(profile, CALL_DURATION_NS.name)

    def of(self, accepts: set[str] | frozenset[str] | Callable[[str], bool]) -> Mask:
        mask: Mask = source_locations.operators(self.profile, accepts).mask() & self.called
        return mask

    def count(self, which: Mask, function: int) -> int:
        return int(self.number[which & (self.function == function)].sum())

    def functions(self, which: Mask) -> list[int]:
        found: list[int] = np.unique(self.function[which]).tolist()
        return [each for each in found if each != NO_FUNCTION]


def _cut_results(profile: Profile, calls: _Calls) -> list[Finding]:
    """Report operators whose large result the function cuts before it computes with it."""
    largest = _largest_allocation(profile)
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
        found += _findings(profile, chosen, cheaper)
    return found


def _largest_allocation(profile: Profile) -> Ints:
    """Return the largest allocation of each node with all below it but the backward, bytes."""
    rows = profile.metrics[_ALLOCATED]
    largest = np.zeros(len(profile.tree), np.int64)
    if rows.maximum is not None:
        largest[rows.node] = rows.maximum
    largest[profile.tree.phase == Phase.BACKWARD] = 0
    return profile.tree.inclusive_maximum(largest)


def _inverses(profile: Profile, calls: _Calls) -> list[Finding]:
    """Report functions that invert a matrix, and multiply at least as often."""
    inverts, multiplies = calls.of(_INVERSES), calls.of(_PRODUCTS)
    chosen = np.zeros(len(profile.tree), np.bool_)
    for function in calls.functions(inverts):
        if calls.count(multiplies, function) >= calls.count(inverts, function):
            chosen |= inverts & (calls.function == function)
    return _findings(profile, chosen, _SOLVED)


def _long_kernels(profile: Profile) -> list[Finding]:
    """Report convolutions over one dimension whose kernels have many taps."""
    rows = profile.metrics.get(CONVOLUTION_TAPS.name)
    if rows is None or rows.maximum is None:
        return []
    taps = np.zeros(len(profile.tree), np.int64)
    taps[rows.node] = rows.maximum
    long = (taps >= _LEAST_TAPS) & (profile.tree.phase != Phase.BACKWARD)
    convolutions = source_locations.outermost(
        source_locations.operators(profile, lambda name: name.startswith("aten::conv"))
    ).mask()
    chosen = convolutions & profile.tree.at_or_above(long)
    most = int(taps.max(initial=0))
    return _findings(profile, chosen, _BY_FFT._replace(what=_BY_FFT.what.format(taps=most)))


def _findings(profile: Profile, chosen: Mask, cheaper: _Cheaper) -> list[Finding]:
    metric = HOST_TIME_NS.name
    whole = total(profile, metric)
    found = []
    for location in source_locations.by_line(Query(profile, chosen), metric):
        share = location.value / whole
        if share < _LEAST_SHARE or location.value < _LEAST_NS:
            continue
        where = source_locations.location_text(profile, location.frame)
        found.append(
            Finding(
                id="cheaper_operator",
                severity=Severity.of_share(share),
                title=f"{where} {cheaper.what}, {share:.0%} of the time in operators",
                nodes=location.nodes[:8],
                evidence={
                    "host_time_ns": location.value,
                    "time_share": share,
                    "calls_count": location.count,
                },
                gain=source_locations.bound(
                    profile, metric, location.value, "the cheaper operator costs nothing"
                ),
                advice=cheaper.advice,
                misleads=cheaper.misleads,
            )
        )
    return found


ANALYZER = Analyzer(
    "cheaper_operator", "does a cheaper operator compute what is used of a result?", _find
)
