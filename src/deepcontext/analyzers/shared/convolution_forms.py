"""Convolutions that cost more than another form with the same result: for `cheaper_operator.py`.

The size of kernels is read in short windows of a recording without shapes. Recognises long and large kernels,
and layers of one pixel that follow an enlargement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.shared import allocations, source_locations
from deepcontext.analyzers.shared.cheaper_forms import Calls, Cheaper, findings
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import KERNEL_ELEMENTS
from deepcontext.profiler.model.tree import NO_NODE

if TYPE_CHECKING:
    from deepcontext.analyzers.finding import Finding
    from deepcontext.profiler.model.profile import Profile

    Ints = source_locations.Ints
    Mask = source_locations.Mask

# Source: cost of a direct convolution is samples x taps, by FFT some 10 x samples x log2(samples).
_LEAST_TAPS: Final = 512
# Of two dimensions, 11 x 11: two passes take 22 operations in place of 121.
_LEAST_ELEMENTS: Final = 121
_LEAST_FEWER: Final = 2


_ENLARGES: Final = "aten::upsample_"
_BY_FFT: Final = Cheaper(
    "convolves with a kernel of {taps:,} taps directly",
    "convolve by FFT: torch.fft.irfft(torch.fft.rfft(signal, n=n) * torch.fft.rfft(kernel, n=n), n=n) with "
    "n = signal + kernel - 1 (torchaudio.functional.fftconvolve); a correlation flips the kernel",
    "the stride is nearly as large as the kernel, so that each value is used a few times only",
)


_SEPARABLE: Final = Cheaper(
    "convolves with a kernel of {taps:,} elements that no module owns",
    "a kernel that is the product of a row and a column (Gaussian, box, Sobel) is two convolutions, "
    "one-dimensional ones: conv2d(conv2d(x, row), column) takes 2 k operations a pixel in place of k x k; "
    "for other large kernels, torch.fft.rfft2",
    "the kernel is learned, or no product of a row and a column",
)
_BEFORE_ENLARGING: Final = Cheaper(
    "enlarges features, and then computes fewer channels from each pixel",
    "run the 1 x 1 convolution before upsampling (interpolate its output): the results are the same, because "
    "both are linear, with fewer pixels for the convolution and fewer channels to upsample",
    "something between both is not linear",
)


class _Kernels:
    """Convolutions that user code runs, and the elements of their kernels, shape (nodes,)."""

    def __init__(self, profile: Profile) -> None:
        tree, rows = profile.tree, profile.metrics[KERNEL_ELEMENTS.name]
        forward = tree.phase != Phase.BACKWARD
        convolutions = source_locations.operators(
            profile, lambda name: name.startswith("aten::conv")
        )
        self.outermost = source_locations.outermost(convolutions).mask() & forward
        self.elements = np.zeros(len(tree), np.int64)
        outermost = tree.nearest(self.outermost)[rows.node]
        known = (outermost != NO_NODE) & forward[rows.node]
        if rows.maximum is not None:
            np.maximum.at(self.elements, outermost[known], rows.maximum[known])

    def at_least(self, elements: int) -> Mask:
        return np.asarray(self.outermost & (self.elements >= elements))


def large_kernels(profile: Profile) -> list[Finding]:
    """Report convolutions with long kernels, and large ones over two dimensions that are not learned."""
    if KERNEL_ELEMENTS.name not in profile.metrics:
        return []
    kernels = _Kernels(profile)
    over_one = source_locations.operators(profile, {"aten::conv1d"}).mask()
    over_two = source_locations.operators(profile, {"aten::conv2d"}).mask()
    learned = profile.tree.below(
        source_locations.nodes_named(
            profile, FrameKind.MODULE, lambda name: name.startswith("Conv")
        ).mask()
    ) | profile.tree.at_or_above(profile.tree.phase == Phase.BACKWARD)
    found = []
    for chosen, cheaper in (
        (kernels.at_least(_LEAST_TAPS) & over_one, _BY_FFT),
        (kernels.at_least(_LEAST_ELEMENTS) & over_two & ~learned, _SEPARABLE),
    ):
        most = int(kernels.elements[chosen].max(initial=0))
        found += findings(profile, chosen, cheaper._replace(what=cheaper.what.format(taps=most)))
    return found


def after_enlarging(profile: Profile, calls: Calls, largest: Ints) -> list[Finding]:
    """Report functions that enlarge pictures, and compute fewer channels by a kernel of one element."""
    if KERNEL_ELEMENTS.name not in profile.metrics:
        return []
    kernels = _Kernels(profile)
    # `interpolate` calls them.
    enlarges = source_locations.operators(profile, lambda name: name.startswith(_ENLARGES)).mask()
    enlarges &= profile.tree.phase != Phase.BACKWARD
    reduces = kernels.outermost & (kernels.elements == 1)
    chosen, layers = np.zeros((2, len(profile.tree)), np.bool_)
    for function in calls.functions(enlarges):
        own = calls.function == function
        size = int(largest[own & enlarges].max())
        fewer = own & reduces & (largest * _LEAST_FEWER <= size)
        if size and any(_takes(profile, each, size) for each in np.flatnonzero(fewer).tolist()):
            chosen |= own & enlarges
            layers |= fewer
    return findings(profile, chosen, _BEFORE_ENLARGING, layers)


def _takes(profile: Profile, layer: int, size: int) -> bool:
    """Return whether a layer's input has this size, bytes: its backward makes a gradient of the same size."""
    return size == int(allocations.largest_gradient(profile)[layer])
