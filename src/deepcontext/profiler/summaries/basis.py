"""The part of a run that views, findings and comparisons speak of: its steady state, where there is one.

Shares of the steady state do not depend on how long the program ran; imports, compilations and first calls
are in the rest, and so is what only some of its steps do (`occasions.py`). A profile of windows that were
asked for is its own basis, and so is a run without steps.
Does not decide what is steady (`model/windows.py`). Invariant: no view chooses a part of a run itself.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from deepcontext.profiler.model.run_info import ALL_RANKS
from deepcontext.profiler.model.some_nodes import of_nodes, together
from deepcontext.profiler.model.windows import WindowKind
from deepcontext.profiler.summaries.occasions import occasions, other_models

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.model.windows import Window
    from deepcontext.profiler.summaries.occasions import Occasion

# A shorter time has too few samples, a single step no range.
LEAST_STEADY_NS: Final = 200_000_000
_FEWEST_STEPS: Final = 2
_OF_STEPS: Final = {WindowKind.WARMUP, WindowKind.STEADY}


class Part(enum.StrEnum):
    """What a figure is of."""

    RUN = "run"
    STEADY = "steady"
    SETUP = "setup"  # with warm-up, and what follows the steady state
    CHOSEN = "chosen"  # windows that were asked for


@dataclass(frozen=True, slots=True)
class Basis:
    """What a profile is shown as.

    Attributes:
        part: what `profile` is of.
        profile: the part, with the nodes of the whole run.
        whole: the run.
        rest: all that is not in a steady state; None for another part.
        setup: the windows before and after it, in which `rest` is without `occasions`; None as `rest`.
        occasions: what only some steps of the steady state do, longest first, then what the steps of other
            windows do.
        first_step: its first step, from 1; 0 where no step is in it.
        steps: number of its steps, those of one rank; 0 where sums are not divided, as those of a set-up.
        setup_ns: time before the steady state.
        end_ns: time after it.
    """

    part: Part
    profile: Profile
    whole: Profile
    rest: Profile | None = None
    setup: Profile | None = None
    occasions: tuple[Occasion, ...] = ()
    first_step: int = 0
    steps: int = 0
    setup_ns: int = 0
    end_ns: int = 0

    @property
    def ranks(self) -> int:
        """Number of ranks of a merged profile, 1 for one process."""
        run = self.profile.run
        return run.ranks if run.rank == ALL_RANKS else 1

    @property
    def last_step(self) -> int:
        """Number of its last step, from 1."""
        return self.first_step + self.steps - 1

    @property
    def all_steps(self) -> int:
        """Number of steps of all ranks together; 0 where sums are not divided."""
        return self.steps * self.ranks

    @property
    def divisor(self) -> int:
        """Number by which sums are divided for values of one step of one rank; 1 where sums are shown."""
        return self.all_steps or 1

    @property
    def step_ns(self) -> float:
        """Mean time of a step on one rank; 0 without steps."""
        return self.profile.run.wall_ns / self.divisor if self.steps else 0.0

    def before_and_after(self) -> tuple[Profile | None, Profile | None]:
        """Return what of `setup` is before the steady state, and what follows it; None where nothing is."""
        if self.setup is None:
            return None, None
        others, run = self.setup.of_windows, cast("Profile", self.setup.whole)
        steady = {each.number for each in run.windows} - {each.number for each in others}
        before = [each for each in others if each.number < min(steady)]
        after = [each for each in others if each.number > max(steady)]
        return run.within(before) if before else None, run.within(after) if after else None

    def of(self, part: Part) -> Profile:
        """Return the profile of a part; that of the basis where the run does not have this part."""
        if part is Part.RUN:
            return self.whole
        return self.rest if part is Part.SETUP and self.rest is not None else self.profile


def basis_of(profile: Profile) -> Basis:
    """Return what a profile is shown as; computed once."""
    return profile.once("basis", lambda: _basis(profile))


def comparable(before: Profile, after: Profile) -> tuple[Profile, Profile]:
    """Return the parts of two runs that can be compared: a steady state only with another one."""
    first, second = basis_of(before), basis_of(after)
    if {first.part, second.part} == {Part.STEADY, Part.RUN}:
        return first.whole, second.whole
    return first.profile, second.profile


def _basis(profile: Profile) -> Basis:
    run, windows = cast("Profile", profile.whole or profile), profile.of_windows
    if not windows:
        steady = [each for each in profile.windows if each.kind is WindowKind.STEADY]
        return basis_of(profile.within(steady)) if _is_enough(steady) else _of_run(profile)
    whole = run.undivided()
    kinds = {each.kind for each in windows}
    steps = sum(each.steps for each in windows) if kinds <= _OF_STEPS else 0
    if kinds != {WindowKind.STEADY}:
        return Basis(Part.CHOSEN, profile, whole, first_step=windows[0].first_step, steps=steps)
    chosen = {each.number for each in windows}
    others = [each for each in run.windows if each.number not in chosen]
    before = [each for each in others if each.number < min(chosen)]
    after = [each for each in others if each.number > max(chosen)]
    usual, apart = _divided(profile, found := occasions(profile))
    setup = run.within(others)
    basis = Basis(
        Part.STEADY,
        usual,
        whole,
        setup if apart is None else together(setup, apart),
        setup,
        (*found, *other_models(run)),
        windows[0].first_step,
        steps,
        sum(each.wall_ns for each in before),
        sum(each.wall_ns for each in after),
    )
    return usual.once("basis", lambda: basis) if apart is not None else basis


def _divided(profile: Profile, found: Sequence[Occasion]) -> tuple[Profile, Profile | None]:
    """Return what all steps do, and what only some do."""
    if not found:
        return profile, None
    nodes = np.any([each.nodes for each in found], axis=0)
    time_ns = sum(each.time_ns for each in found)
    left_ns = max(profile.run.wall_ns - time_ns, 0)
    return of_nodes(profile, ~nodes, left_ns), of_nodes(profile, nodes, time_ns)


def _of_run(profile: Profile) -> Basis:
    return Basis(Part.RUN, profile, profile)


def _is_enough(steady: Sequence[Window]) -> bool:
    return (
        sum(each.steps for each in steady) >= _FEWEST_STEPS
        and sum(each.wall_ns for each in steady) >= LEAST_STEADY_NS
    )
