"""Number and duration of the steps of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import CALL_DURATION_NS, STEP_TIME_NS
from deepcontext.profiler.model.grouping import Spread, Spreads
from deepcontext.profiler.model.metric_values import counts_or_zeros

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

# torch's name for the scope of an optimizer's step; the class follows.
STEP_SCOPE: Final = "Optimizer.step#"


def step_count(profile: Profile) -> int:
    """Return the number of marked steps, or of calls of an optimizer without marks, or 0."""
    if profile.run.steps:
        return profile.run.steps
    frames = profile.frames
    is_step = np.array([name.startswith(STEP_SCOPE) for name in frames.strings], np.bool_)
    of_frame = is_step[frames.name] & (frames.kind == FrameKind.SCOPE)
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)[of_frame[profile.tree.frame]]
    return int(calls.max(initial=0))


def step_times(profile: Profile) -> Spread | None:
    """Return the distribution of the times between `step()` marks, None without steps."""
    rows = profile.metrics.get(STEP_TIME_NS.name)
    if rows is None or not len(rows.node):
        return None
    return Spreads.of_rows(rows, np.zeros(len(rows.node), np.int64), 1).spread(0)
