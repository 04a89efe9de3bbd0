"""Backward passes of a program: how many began at a scalar, and at which line most of them began.

Does not judge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_MOST_UNLINKED: Final = 0.1
_MADE: Final = "Backward"


def passes_from_scalars(profile: Profile) -> int:
    """Return the number of backward passes that began at a scalar, several a step with accumulation.

    Source: torch/autograd/__init__.py, which makes a gradient of ones for each.
    """
    made = source_locations.nodes_named(profile, FrameKind.PYTHON, {"_make_grads"})
    ones = source_locations.operators(profile, {"aten::ones_like"}).under(made).nodes()
    return int(counts_or_zeros(profile, CALL_DURATION_NS.name)[ones].sum())


def backward_line(profile: Profile) -> source_locations.Location | None:
    """Return the line that calls most of the backward, None where no call was recorded."""
    calls = source_locations.nodes_named(profile, FrameKind.PYTHON, {"backward", "grad"})
    lines = source_locations.by_line(source_locations.outermost(calls), HOST_TIME_NS.name)
    return lines[0] if lines and lines[0].frame is not None else None


def links_backwards(profile: Profile) -> bool:
    """Return whether most nodes of autograd that ran are below the forward operator that made them.

    What adds up gradients, and what a call of `backward` does itself, has no forward operator.
    """
    tree = profile.tree
    is_operator = profile.is_kind(FrameKind.OPERATOR)
    is_forward = (is_operator & (tree.phase != Phase.BACKWARD)) | profile.is_kind(FrameKind.MODULE)
    backward = made_by_autograd(profile) & (tree.phase == Phase.BACKWARD)
    outermost = np.flatnonzero(backward & ~tree.below(backward))
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)[outermost]
    unlinked = calls[~tree.below(is_forward)[outermost]].sum()
    return bool(unlinked <= _MOST_UNLINKED * calls.sum())


def made_by_autograd(profile: Profile) -> source_locations.Mask:
    """Return which nodes are of autograd (AddmmBackward0, CompiledFunctionBackward), shape (nodes,)."""
    return source_locations.nodes_named(
        profile, FrameKind.OPERATOR, lambda name: _MADE in name
    ).mask()
