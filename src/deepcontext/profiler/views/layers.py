"""Layers: the kinds of frame that views show or leave out together.

Does not decide what is shown by default. Invariant: each kind is in exactly one layer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import FrameKind, Labelled

if TYPE_CHECKING:
    import numpy.typing as npt


class Layer(Labelled):
    """Part of the program a frame belongs to, in the order of a call path."""

    ROOT = 0
    THREAD = 1
    PYTHON = 2
    SCOPE = 3
    MODULE = 4
    OPERATOR = 5
    COMPILED = 6
    NATIVE = 7
    GPU = 8


LAYER_OF_KIND: Final = {
    FrameKind.ROOT: Layer.ROOT,
    FrameKind.THREAD: Layer.THREAD,
    FrameKind.RANK: Layer.THREAD,
    FrameKind.PYTHON: Layer.PYTHON,
    FrameKind.SCOPE: Layer.SCOPE,
    FrameKind.PHASE: Layer.SCOPE,
    FrameKind.MARKER: Layer.SCOPE,
    FrameKind.MODULE: Layer.MODULE,
    FrameKind.OPERATOR: Layer.OPERATOR,
    FrameKind.HLO: Layer.COMPILED,
    FrameKind.GRAPH: Layer.GPU,
    FrameKind.NATIVE: Layer.NATIVE,
    FrameKind.GPU_API: Layer.GPU,
    FrameKind.KERNEL: Layer.GPU,
    FrameKind.COPY: Layer.GPU,
    FrameKind.STALL: Layer.GPU,
}
# Layers that a view can hide; the root always stays, the pivot decides about threads and ranks.
OPTIONAL_LAYERS: Final = tuple(layer for layer in Layer if layer not in {Layer.ROOT, Layer.THREAD})


def layer_of_frame(kind: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the `Layer` of frames of these kinds, shape (frames,), uint8."""
    lookup = np.zeros(max(FrameKind) + 1, np.uint8)
    for each, layer in LAYER_OF_KIND.items():
        lookup[each] = layer
    return lookup[kind]
