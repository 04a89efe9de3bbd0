"""Number and duration of the steps of a run, and what ends a step."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import CALL_DURATION_NS, STEP_TIME_NS
from deepcontext.profiler.format.step_source import SECTION, StepSource
from deepcontext.profiler.model.grouping import Spread, Spreads
from deepcontext.profiler.model.metric_values import counts_or_zeros

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

# torch's name for the scope of an optimizer's step; the class follows.
STEP_SCOPE: Final = "Optimizer.step#"


@dataclass(frozen=True, slots=True)
class StepRule:
    """What ends a step.

    Attributes:
        source: what kind of thing ends steps.
        what: name of the scope, module or function; "" for marks.
        file: file of the user's call, "" where unknown.
        line: its line, from 1; 0 where unknown.
        count: steps that have ended.
    """

    source: StepSource
    what: str
    file: str
    line: int
    count: int

    def explain(self) -> str:
        """Return what a step is, for a sentence that begins with "a step is"."""
        return self.source.explain(self.what)


def step_rule(profile: Profile) -> StepRule | None:
    """Return what ends a step; None for profiles that do not say so: older or merged profiles."""
    payload = profile.sections.get(SECTION)
    if payload is None:
        return None
    try:
        said = json.loads(payload)
        source = StepSource[str(said["source"]).upper()]
        return StepRule(
            source, str(said["what"]), str(said["file"]), int(said["line"]), int(said["count"])
        )
    except (ValueError, KeyError, TypeError):  # written by a newer or another program
        return None


def step_count(profile: Profile) -> int:
    """Return the number of marked steps, or of calls of an optimizer without marks, or 0.

    Of windows, it is the number of steps that ended in them.
    """
    if profile.of_windows:
        return sum(each.steps for each in profile.of_windows)
    if profile.run.steps:
        return profile.run.steps
    frames = profile.frames
    is_step = np.array([name.startswith(STEP_SCOPE) for name in frames.strings], np.bool_)
    of_frame = is_step[frames.name] & (frames.kind == FrameKind.SCOPE)
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)[of_frame[profile.tree.frame]]
    return int(calls.max(initial=0))


def step_times(profile: Profile) -> Spread | None:
    """Return the distribution of the times between the ends of two steps, None without steps."""
    rows = profile.metrics.get(STEP_TIME_NS.name)
    if rows is None or not len(rows.node):
        return None
    return Spreads.of_rows(rows, np.zeros(len(rows.node), np.int64), 1).spread(0)
