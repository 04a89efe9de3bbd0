"""Tensors that a model keeps from each of its steps: caches without a bound, histories of activations.

All that a line inside a module ever allocated is held at the peak, and it allocated in each step. Only
counts of allocations decide, so that other work on the machine changes nothing. Results with a graph are
`kept_results.py`'s; what a loop outside modules collects looks the same as data made before the first step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.summaries.steps import step_count

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

# Of all memory at the peak, and in bytes.
_LEAST_SHARE: Final = 0.25
_LEAST_BYTES: Final = 16 << 20
# Of what was ever allocated, and of the steps: the last step's may not be kept yet.
_LEAST_KEPT: Final = 0.9
_FEWEST_STEPS: Final = 32


def kept(profile: Profile, prefix: str) -> source_locations.Mask:
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


def kept_each_step(profile: Profile, prefix: str, peak: int) -> list[Finding]:
    """Return at most one finding, about the line that keeps most.

    Args:
        profile: the profile.
        prefix: "" for the memory of the host, "gpu_" for that of devices.
        peak: most bytes held at once.
    """
    metric = f"{prefix}peak_bytes"
    lines = source_locations.by_line(
        Query(profile, kept(profile, prefix)), metric, max(_LEAST_BYTES, _LEAST_SHARE * peak)
    )
    if not lines:
        return []
    line, steps, share = lines[0], step_count(profile), lines[0].value / peak
    where = source_locations.location_text(profile, line.frame)
    return [
        Finding(
            id="memory",
            severity=Severity.WARNING,
            title=(
                f"what {where} allocates is kept from each of {steps:,} steps and grows with them: "
                f"{share:.0%} of the {'device ' if prefix else ''}memory at the peak"
            ),
            nodes=line.nodes[:8],
            evidence={metric: line.value, "peak_share": share, "step_bytes": line.value // steps},
            gain=Gain(metric, line.value, share, "nothing is kept from one step to the next"),
            advice=(
                "do not keep tensors that no later step uses, or bound what keeps them (drop the oldest "
                "entry of a cache, functools.lru_cache(maxsize=...)); keep numbers (.item()) or running "
                "sums of what is only logged; a profile with --holders names the object that keeps them"
            ),
            misleads="the same inputs come again in a later epoch, and everything fits",
        )
    ]
