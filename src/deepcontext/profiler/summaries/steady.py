"""The steady state of a run as a profile of its own, where there is one, and what lies before and after it.

Shares of the steady state do not depend on how long the program ran; imports, compilations and first calls
are in the rest. Does not decide what is steady (`model/windows.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.model.windows import WindowKind

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

# A shorter time has too few samples, a single step no range.
_LEAST_NS: Final = 200_000_000
_FEWEST_STEPS: Final = 2
# Lines outside the steady state are shown where they take this share of the run.
LEAST_REST: Final = 0.1


@dataclass(frozen=True, slots=True)
class SteadyState:
    """A run in two parts.

    Attributes:
        profile: of the steady windows.
        rest: of all other windows.
        first_step: first step of the steady state, from 1.
        steps: number of its steps.
        step_ns: mean time of one of them.
    """

    profile: Profile
    rest: Profile
    first_step: int
    steps: int
    step_ns: float


def steady_state(profile: Profile) -> SteadyState | None:
    """Return the steady state, None where it is unknown or too short; computed once."""
    return profile.once("steady state", lambda: _steady_state(profile))


def _steady_state(profile: Profile) -> SteadyState | None:
    if profile.of_windows:  # a part of a run, which was asked for
        return None
    windows = profile.windows
    steady = [each for each in windows if each.kind is WindowKind.STEADY]
    steps, wall_ns = sum(each.steps for each in steady), sum(each.wall_ns for each in steady)
    if steps < _FEWEST_STEPS or wall_ns < _LEAST_NS:
        return None
    rest = [each for each in windows if each.kind is not WindowKind.STEADY]
    return SteadyState(
        profile.within(steady),
        profile.within(rest),
        steady[0].first_step,
        steps,
        wall_ns / steps,
    )
