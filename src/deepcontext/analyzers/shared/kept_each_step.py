"""Tensors that a model keeps from each of its steps: caches without a bound, histories of activations.

All that a line inside a module ever allocated is held at the peak, and it allocated in each step. Does not
report (`memory.py` does, by growth): what copies them is not judged as a copy, but as memory that grows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.summaries.steps import step_count

if TYPE_CHECKING:
    from deepcontext.analyzers.shared.source_locations import Mask
    from deepcontext.profiler.model.profile import Profile

# Of what was ever allocated, and of the steps: the last step's may not be kept yet.
_LEAST_KEPT: Final = 0.9
_FEWEST_STEPS: Final = 32


def kept(profile: Profile, prefix: str) -> Mask:
    """Return which nodes keep what they allocated in each step, shape (nodes,)."""
    held, allocated = f"{prefix}peak_bytes", f"{prefix}alloc_bytes"
    steps = step_count(profile)
    if not {held, allocated} <= set(profile.metrics) or steps < _FEWEST_STEPS:
        return np.zeros(len(profile.tree), np.bool_)
    tree = profile.tree
    inside = tree.below(profile.is_kind(FrameKind.MODULE))
    # A backward and an optimizer keep gradients and state, which do not grow.
    inside &= (tree.phase == Phase.FORWARD) | (tree.phase == Phase.NONE)
    inside &= profile.counts(allocated) >= _LEAST_KEPT * steps
    remains = profile.exclusive(held) >= _LEAST_KEPT * profile.exclusive(allocated)
    return np.asarray(inside & remains)
