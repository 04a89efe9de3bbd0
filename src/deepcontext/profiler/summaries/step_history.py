"""How the times of steps are distributed, how they went over the run, and which were slowest.

From what the native core keeps of all steps in constant memory (`native/core/step_history.h`).
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format.step_source import SECTION

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

# Of a quantile, relative: `StepHistory::kError` of the native core.
QUANTILE_ERROR: Final = 0.01


@dataclass(frozen=True, slots=True)
class Part:
    """Times of consecutive steps, in ns."""

    count: int
    total_ns: int
    minimum_ns: int
    maximum_ns: int

    @property
    def mean_ns(self) -> float:
        """Mean time of a step."""
        return self.total_ns / self.count


@dataclass(frozen=True, slots=True)
class SlowStep:
    """One of the slowest steps: its number from 1, when it ended, and how long it took, in ns.

    `sampled_ns`: what the main thread did not wait for a processor meanwhile, in ns; 0 where unknown.
    """

    number: int
    end_ns: int
    duration_ns: int
    sampled_ns: int = 0

    @property
    def work_ns(self) -> int:
        """How long it would have taken with a processor of its own, in ns, as far as is known."""
        return self.sampled_ns or self.duration_ns


@dataclass(frozen=True, slots=True)
class StepHistory:
    """The times of all steps but the first one, whose beginning is not known.

    Attributes:
        bins: pairs of a time in ns and the number of steps with this time, within `QUANTILE_ERROR`,
            ascending.
        parts: at most 128 parts of consecutive steps; all but the last have the same number of steps.
        slowest: at most eight steps, slowest first.
        slow: the slowest 64 of the steps that took more than 1.5 times the median, in order;
            `slow_count`: number of all of them.
    """

    bins: tuple[tuple[int, int], ...]
    parts: tuple[Part, ...]
    slowest: tuple[SlowStep, ...]
    slow: tuple[SlowStep, ...] = ()
    slow_count: int = 0

    @property
    def count(self) -> int:
        """Number of steps."""
        return sum(count for _, count in self.bins)

    def quantile(self, share: float) -> int:
        """Return the time that this share of the steps does not exceed, within `QUANTILE_ERROR`, in ns."""
        wanted, seen = math.ceil(share * self.count), 0
        for duration_ns, count in self.bins:
            seen += count
            if seen >= wanted:
                return duration_ns
        return 0


def step_history(profile: Profile) -> StepHistory | None:
    """Return the history; None without steps, for parts of runs, and for older or merged profiles."""
    try:
        said = json.loads(profile.sections.get(SECTION, b"{}"))
        history = StepHistory(
            tuple((int(duration), int(count)) for duration, count in said.get("bins", ())),
            tuple(Part(*map(int, each)) for each in said.get("parts", ())),
            tuple(SlowStep(*map(int, each)) for each in said.get("slowest", ())),
            tuple(SlowStep(*map(int, each)) for each in said.get("slow", ())),
            int(said.get("slow_count", 0)),
        )
    except (ValueError, TypeError, AttributeError):  # written by a newer or another program
        return None
    return history if history.count and all(part.count > 0 for part in history.parts) else None
