"""Backward passes of a program: how many began at a scalar, and at which line most of them began.

Does not judge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile


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
