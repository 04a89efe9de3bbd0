"""Steps that take longer than most: which, how regularly, and the lines that take the time.

The sampler sums where the main thread is in steps of more than 1.5 times the median
(`native/core/slow_steps.h`); a line is charged what it has more in such a step than in any other. Time in
which the thread had no processor is in neither, and steps that only waited for one are not among the slow
ones. Trends come from the windows. Does not judge.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from deepcontext.profiler.format.metric import (
    OPERATOR_READY_TIME_NS,
    SAMPLED_READY_TIME_NS,
    SLOW_STEP_TIME_NS,
)
from deepcontext.profiler.model.elapsed import ELAPSED_TIME_NS
from deepcontext.profiler.model.metric_values import exclusive_or_zeros
from deepcontext.profiler.model.windows import WindowKind
from deepcontext.profiler.summaries.account import Cause, account, in_programs, waits_for_device
from deepcontext.profiler.summaries.basis import Part, basis_of
from deepcontext.profiler.summaries.lines import UserLines
from deepcontext.profiler.summaries.setup_time import compiling, importing
from deepcontext.profiler.summaries.step_history import step_history
from deepcontext.profiler.summaries.time_between_operators import on_main_threads

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.step_history import SlowStep

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

# A slow step takes so many times the median: `SlowSteps::kFactor` of the native core.
_SLOW: Final = 1.5
# What is shorter in a slow step than this many times in another one is no reason of it.
_LONGER: Final = 3.0
_NEARLY: Final = 0.8
# Lines with more than their steps have it from steps that compile, or do what others do not.
_MOST_OF_STEPS: Final = 1.5
# Steps whose wait for the device has less than this part of a slow step's only queue work for it.
_OF_WAIT: Final = 0.03
# A period: so many steps have it at least, which is this part of the slowest ones, and would be chance in
# less than one of so many programs.
_FEWEST: Final = 4
_OF_PERIOD: Final = 0.8
_CHANCE: Final = 1e-3
_SIZES: Final = (4, 8, 16, 32, 64)
# A trend: steps, how well windows are in order (Kendall's tau), and how much longer the line takes.
_FEWEST_STEPS: Final = 40
_ORDERED: Final = 0.7
_MORE: Final = 1.3


@dataclass(frozen=True, slots=True)
class LineExcess:
    """A line, and what it takes more than elsewhere, summed over some steps, in ns."""

    frame: Frame
    excess_ns: int


@dataclass(frozen=True, slots=True)
class SlowSteps:
    """The slow steps of a steady state, without those that do something that others do not (`occasions.py`).

    Attributes:
        steps: number of all steps.
        typical_ns: median time of a step.
        work_ns: the part of it in which the main thread did not wait for a processor.
        slow: the slowest of those that are slow by what they do, in order of time.
        period: the number of steps from one to the next, 0 where there is no order.
        phase: what is left of their numbers when they are divided by it.
        lines: what lines have more in them, summed over all slow steps, most first.
    """

    steps: int
    typical_ns: int
    work_ns: int
    slow: tuple[SlowStep, ...]
    period: int
    phase: int
    lines: tuple[LineExcess, ...]

    @property
    def regular(self) -> tuple[SlowStep, ...]:
        """The slow steps of the period."""
        return tuple(
            each for each in self.slow if self.period and each.number % self.period == self.phase
        )

    @property
    def slowest(self) -> tuple[SlowStep, ...]:
        """The fewest steps that together have nearly the excess of the first line, slowest first."""
        wanted, found = _NEARLY * (self.lines[0].excess_ns if self.lines else 0), []
        for step in sorted(self.slow, key=lambda each: -each.work_ns):
            if wanted <= 0:
                break
            wanted -= self.excess_ns(step)
            found.append(step)
        return tuple(found)

    def excess_ns(self, *steps: SlowStep) -> int:
        """Return what these steps take more than others, without waits for a processor, in ns."""
        return sum(each.work_ns - self.work_ns for each in steps)


@dataclass(frozen=True, slots=True)
class Trend:
    """Steps that become slower, or faster.

    Attributes:
        first_ns: mean time of the first steps; `last_ns`: of the last ones.
        steps: number of the steps whose time would be saved.
        lines: what lines have more in these steps, most first.
    """

    first_ns: float
    last_ns: float
    steps: int
    lines: tuple[LineExcess, ...]


def slow_steps(profile: Profile) -> SlowSteps | None:
    """Return the slow steps of the steady state; None without one, or without slow steps."""
    return profile.once("slow steps", lambda: _slow_steps(profile))


def _slow_steps(profile: Profile) -> SlowSteps | None:
    basis = basis_of(profile)
    history = step_history(basis.whole)
    if basis.part is not Part.STEADY or history is None or not history.slow:
        return None
    last = basis.first_step + basis.steps
    slow = tuple(
        each
        for each in history.slow
        if basis.first_step <= each.number < last
        and not any(occasion.has(each.number) for occasion in basis.occasions)
    )
    count = round(history.slow_count * len(slow) / len(history.slow))
    # Steps are slow by the median of all, which is that of another model where others have most steps.
    if not count or 2 * count > basis.steps:
        return None
    lines = UserLines.of(basis.profile)
    slow_ns = exclusive_or_zeros(basis.profile, SLOW_STEP_TIME_NS.name)
    here = lines.sums(slow_ns)
    elsewhere = _per_line(basis.profile, lines)
    others = max(basis.steps - count, 1)
    typical = np.maximum(elsewhere - here, 0) / others
    excess = here - count * typical
    excess -= lines.sums(_waits_for_queued_work(basis.profile, slow_ns, count, others))
    typical_ns = history.quantile(0.5)
    usual_ns = int(
        typical_ns * without_waits(basis.profile) / max(account(basis.profile).whole_ns, 1)
    )
    working = tuple(each for each in slow if each.work_ns > _SLOW * usual_ns)
    if not working:
        return None
    # Few steps may have all of it: the others are slow by chance, and share the line.
    cumulated = np.cumsum(sorted((each.work_ns - usual_ns for each in working), reverse=True))
    few = np.minimum(np.searchsorted(cumulated, _NEARLY * excess) + 1, count)
    excess[excess < (_LONGER - 1) * few * typical] = 0
    if excess.sum() > _MOST_OF_STEPS * _excess_of(slow, count, typical_ns):
        return None
    largest = _largest(basis.profile, lines, excess)
    return SlowSteps(
        basis.steps, typical_ns, usual_ns, working, *_period(working, usual_ns), largest
    )


def without_waits(profile: Profile) -> int:
    """Return the elapsed time in which the main thread did not wait for a processor, in ns."""
    found = account(profile)
    return found.whole_ns - found.of(Cause.PROCESSOR)


def _waits_for_queued_work(profile: Profile, slow_ns: Ints, count: int, others: int) -> Ints:
    """Return the part of `slow_ns` that waits for work of other steps, by node, shape (nodes,).

    Steps that only queue work for a device are short, and the step that reads a result waits for the
    work of all; so does a call of a compiled program where too much is queued. Where other steps wait for
    the device, too, a longer wait is the step's own.

    Args:
        profile: the steady state.
        slow_ns: time in slow steps by node, shape (nodes,).
        count: number of slow steps.
        others: number of the other steps.
    """
    waits = waits_for_device(profile)
    slow = np.minimum(slow_ns, waits)
    is_queued = (waits - slow).sum() / others < _OF_WAIT * slow.sum() / count
    waited = np.where(in_programs(profile), slow_ns, slow)
    return waited if is_queued else np.zeros_like(slow)


def _excess_of(slow: Sequence[SlowStep], count: int, typical_ns: int) -> int:
    """Return what the slow steps take more than others at most: those not listed are shorter."""
    more = [each.duration_ns - typical_ns for each in slow]
    return sum(more) + (count - len(slow)) * min(more)


def trend(profile: Profile) -> Trend | None:
    """Return how steps become slower or faster at a line, None where they do not."""
    found = _windows(profile)
    if found is None or found.steps.sum() < _FEWEST_STEPS or len(found.steps) < _FEWEST:
        return None
    third, end = found.steps.sum() / 3, np.cumsum(found.steps)
    first, last = end <= third, end - found.steps >= 2 * third
    if not first.any() or not last.any():
        return None
    begun, ended = found.a_step(first), found.a_step(last)
    change = np.abs(ended - begun)
    line = int(np.argmax(change))
    orders = (_order(each / found.steps) for each in found.of_line_and_function(line))
    if max(map(abs, orders)) < _ORDERED:
        return None
    low = min(begun[line], ended[line])
    grows = ended[line] > begun[line]
    more = np.where((ended > begun) == grows, change, 0)
    if max(begun[line], ended[line]) < _MORE * low:
        return None
    # Half of the change is what a step has more on average.
    lines = _largest(profile, found.lines, more * found.steps.sum() / 2)
    return Trend(found.step_ns(first), found.step_ns(last), int(found.steps.sum()), lines)


def slow_start(profile: Profile) -> Trend | None:
    """Return a line that takes much longer up to some step than afterwards, None where none does."""
    found = _windows(profile)
    if found is None:
        return None
    best, clearest = None, 0.0
    all_steps = float(found.steps.sum())
    for count in range(1, len(found.steps)):
        first = np.arange(len(found.steps)) < count
        steps = float(found.steps[first].sum())
        if 2 * steps > all_steps:
            break
        begun, later = found.a_step(first), found.a_step(~first)
        more = np.where(begun >= _LONGER * later, begun - later, 0)
        # The change of a mean stands out most where it is.
        clear = float(more.max(initial=0)) * math.sqrt(steps * (all_steps - steps))
        if clear > clearest:
            lines = _largest(profile, found.lines, more * steps)
            best = Trend(found.step_ns(first), found.step_ns(~first), int(steps), lines)
            clearest = clear
    return best


@dataclass(frozen=True, slots=True, eq=False)
class _Windows:
    """The windows after set-up, without what follows the last cut.

    Attributes:
        steps: number of steps of each, shape (windows,).
        wall_ns: its time, same shape.
        line_ns: time of each line without set-up and waits for a processor, shape (windows, lines).
        lines: the lines.
        function: name and file of the function of each line, shape (lines, 2).
    """

    steps: Floats
    wall_ns: Floats
    line_ns: Floats
    lines: UserLines
    function: Ints

    def a_step(self, chosen: npt.NDArray[np.bool_]) -> Floats:
        """Return the time of each line in a step of some windows, shape (lines,)."""
        return np.asarray(self.line_ns[chosen].sum(axis=0) / self.steps[chosen].sum())

    def of_line_and_function(self, line: int) -> tuple[Floats, Floats]:
        """Return the time of a line, and of all lines of its function, by window, shape (windows,).

        Samples of a few steps tell how long a loop takes, but not which of its lines takes how much.
        """
        is_own = (self.function == self.function[line]).all(axis=1)
        return self.line_ns[:, line], self.line_ns[:, is_own].sum(axis=1)

    def step_ns(self, chosen: npt.NDArray[np.bool_]) -> float:
        """Return the mean time of a step of some windows."""
        return float(self.wall_ns[chosen].sum() / self.steps[chosen].sum())


def _windows(profile: Profile) -> _Windows | None:
    run = cast("Profile", profile.whole or profile)
    return run.once("lines by window", lambda: _of_windows(run))


def _of_windows(run: Profile) -> _Windows | None:
    after = (each for each in run.windows[1:-1] if each.steps)
    windows = [each for each in after if each.kind is not WindowKind.OTHER]
    if not windows or ELAPSED_TIME_NS.name not in run.metrics:
        return None
    lines, frames = UserLines.of(run), run.frames
    meant = on_main_threads(run) & ~importing(run) & ~compiling(run)
    for each in basis_of(run).occasions:
        meant &= ~each.nodes
    rows = []
    for window in windows:
        part = run.within([window])
        working = part.exclusive(ELAPSED_TIME_NS.name)
        for ready in (SAMPLED_READY_TIME_NS, OPERATOR_READY_TIME_NS):
            working = working - exclusive_or_zeros(part, ready.name)
        rows.append(np.maximum(lines.sums(np.where(meant, working, 0)), 0))
    return _Windows(
        np.array([each.steps for each in windows], np.float64),
        np.array([each.wall_ns for each in windows], np.float64),
        np.array(rows, np.float64),
        lines,
        np.stack([frames.name[lines.frame], frames.file[lines.frame]], axis=1).astype(np.int64),
    )


def _per_line(profile: Profile, lines: UserLines) -> Floats:
    """Return the time of each line without imports, compiling and waits for a processor."""
    time = {
        place.frame: place.without(Cause.PROCESSOR)
        for place in account(profile).lines
        if place.frame
    }
    return np.array([time.get(profile.frames[int(frame)], 0) for frame in lines.frame], np.float64)


def _largest(profile: Profile, lines: UserLines, excess: Floats) -> tuple[LineExcess, ...]:
    order = np.argsort(-excess, kind="stable")
    return tuple(
        LineExcess(profile.frames[int(lines.frame[index])], int(excess[index]))
        for index in order[excess[order] > 0].tolist()
    )


def _order(values: Floats) -> float:
    """Return Kendall's tau of values with their places: 1 for ascending ones, -1 for descending ones."""
    signs = np.sign(values[None, :] - values[:, None])
    return float(np.triu(signs, 1).sum() / (len(values) * (len(values) - 1) / 2))


def _period(slow: Sequence[SlowStep], usual_ns: int) -> tuple[int, int]:
    """Return after how many steps slow ones come again, and the remainder; (0, 0) if they come at random.

    The slowest are looked at, in several numbers of them, because a busy machine makes others slow. Of all
    periods it is the one that is least likely by chance.
    """
    slowest = sorted(slow, key=lambda each: -each.work_ns)
    best, chance = (0, 0), _CHANCE
    for size in dict.fromkeys(min(size, len(slowest)) for size in _SIZES):
        numbers = np.array([each.number for each in slowest[:size]])
        for period in range(2, int(np.ptp(numbers)) // (_FEWEST - 1) + 1):
            counts = np.bincount(numbers % period)
            phase, hits = int(counts.argmax()), int(counts.max())
            likely = len(_SIZES) * period * math.comb(size, hits) * float(period) ** -hits
            if hits >= max(_FEWEST, _OF_PERIOD * size) and likely < chance:
                best, chance = (period, phase), likely
    excess = {each.number: each.work_ns - usual_ns for each in slowest[: _SIZES[-1]]}
    return _longest(best, excess)


def _longest(found: tuple[int, int], excess: Mapping[int, int]) -> tuple[int, int]:
    """Return the longest multiple of a period whose steps have nearly all of what its steps take more.

    Steps that are slow by chance make a divisor look regular, too. Multiples of a true period share it among
    them.

    Args:
        found: a period and its remainder.
        excess: what steps take more than usual, in ns, by number.
    """
    period, phase = found
    best, hits = found, [each for each in excess if period and each % period == phase]
    least = _OF_PERIOD * sum(excess[each] for each in hits)
    for factor in range(2, (max(hits, default=0) // period + 1) if period else 0):
        by_phase: defaultdict[int, list[int]] = defaultdict(list)
        for each in hits:
            by_phase[each % (period * factor)].append(each)
        common = max(by_phase, key=lambda each: sum(excess[step] for step in by_phase[each]))
        steps = by_phase[common]
        if len(steps) >= _FEWEST and sum(excess[each] for each in steps) >= least:
            best = (period * factor, common)
    return best
