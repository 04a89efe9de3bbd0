"""Sentences and names for the account of elapsed time; the same in every view."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.summaries.account import Cause, account
from deepcontext.profiler.summaries.basis import Part, basis_of
from deepcontext.profiler.summaries.occasions import OccasionKind
from deepcontext.profiler.summaries.verdict import OPERATORS, WAITS, Limit
from deepcontext.ui.format import (
    ASCII,
    elide,
    format_count,
    format_ns,
    format_share,
    shorten_path,
)

if TYPE_CHECKING:
    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.account import Account, Place
    from deepcontext.profiler.summaries.basis import Basis
    from deepcontext.profiler.summaries.occasions import Occasion
    from deepcontext.profiler.summaries.verdict import Leading, Verdict

CAUSE_NAMES: Final = {
    Cause.IMPORTING: "imports",
    Cause.COMPILING: "compiling",
    Cause.FORWARD: "forward",
    Cause.BACKWARD: "backward",
    Cause.RECOMPUTE: "recompute",
    Cause.OPTIMIZER: "optimizer",
    Cause.LOADING: "data loading",
    Cause.OPERATORS: "operators",
    Cause.PROGRAMS: "compiled programs",
    Cause.COLLECTIVES: "collectives",
    Cause.PYTHON: "Python",
    Cause.NATIVE: "native code",
    Cause.OUTSIDE: "Python or wait",
    Cause.GARBAGE: "garbage collection",
    Cause.DEVICE: "wait: device",
    Cause.DATA: "wait: data",
    Cause.PROCESS: "wait: process",
    Cause.LOCK: "wait: lock",
    Cause.GIL: "wait: GIL",
    Cause.IO: "wait: I/O",
    Cause.SLEEP: "sleep",
    Cause.PROCESSOR: "wait: CPU",
    Cause.WAITING: "wait: other",
    Cause.UNKNOWN: "unknown",
}
# Parts of the bar, in order.
GROUPS: Final[tuple[tuple[str, tuple[Cause, ...]], ...]] = (
    ("set-up", (Cause.IMPORTING, Cause.COMPILING)),
    ("operators", (*OPERATORS, Cause.PROGRAMS, Cause.COLLECTIVES)),
    ("Python", (Cause.PYTHON, Cause.GARBAGE, Cause.OUTSIDE)),
    ("native code", (Cause.NATIVE,)),
    ("waiting", (*WAITS, Cause.PROCESSOR)),
    ("unknown", (Cause.UNKNOWN,)),
)
# Names of C++ functions have hundreds of characters.
_LONGEST_NAME: Final = 32
_WAITS_FOR: Final = {
    Cause.DEVICE: "for the device",
    Cause.DATA: "for data",
    Cause.PROCESS: "for other processes",
    Cause.LOCK: "for locks or other threads",
    Cause.GIL: "for the GIL",
    Cause.IO: "for input and output",
    Cause.SLEEP: "for the end of a sleep",
    Cause.WAITING: "for something else",
}
_RUNS: Final = {
    Cause.PROGRAMS: "compiled programs run",
    Cause.COLLECTIVES: "collectives run or wait for other ranks",
    Cause.PYTHON: "Python runs",
    Cause.GARBAGE: "Python runs",
    Cause.NATIVE: "native code runs",
    Cause.OUTSIDE: "code outside operators runs or waits",
}
_RUNNING: Final = (Cause.PYTHON, Cause.NATIVE)
_LEAST_SAID: Final = 0.05
_MOST_OF_SETUP: Final = 4
_SAID: Final = {
    Limit.SETUP: "work before step {step} takes {share} of the run",
    Limit.END: "work after step {last} takes {share} of the run",
    Limit.END_COMPILES: "compiling after step {last} takes {share} of the run",
    Limit.BUSY_MACHINE: "this machine was busy: the main thread waited for a processor {share} of the "
    "{elapsed}",
    Limit.IMPORTS: "imports take {share} of the {elapsed}",
    Limit.COMPILES: "compiling takes {share} of the {elapsed}",
    Limit.GPU_IDLE: "the GPU is idle {share} of its time",
    Limit.GPU_BUSY: "the GPU is busy {share} of its time",
    Limit.WAITS: None,
    Limit.RUNS: None,
}
_MOST: Final = ", most at {}"
_LATE: Final = "; the host is late at {}"


def verdict_text(profile: Profile, verdict: Verdict) -> str:
    """Return a statement as a sentence without a full stop."""
    at = place_text(profile, verdict.frame)
    said = _SAID[verdict.limit]
    if said is None:
        said = _waits(verdict) if verdict.limit is Limit.WAITS else _runs(verdict)
    place = _LATE if verdict.limit is Limit.GPU_IDLE else _MOST
    basis = basis_of(profile)
    elapsed = "steady state" if basis.part is Part.STEADY else "elapsed time"
    has_imports = account(basis.profile).of(Cause.IMPORTING)
    whole = "time without imports" if has_imports else elapsed
    steps = {"step": basis.first_step, "last": basis.last_step}
    text = said.format(
        share=format_share(verdict.share),
        whole=whole,
        elapsed=elapsed,
        **{name: format_count(value) for name, value in steps.items()},
    )
    return text + (place.format(at) if at else "")


def _waits(verdict: Verdict) -> str:
    first, part = verdict.causes[0]
    if verdict.share - part < _LEAST_SAID:
        return f"the main thread waits {_WAITS_FOR[first]} {{share}} of the {{whole}}"
    parts = ", ".join(
        f"{_WAITS_FOR[cause]} {format_share(part)}"
        for cause, part in verdict.causes
        if part >= _LEAST_SAID
    )
    return f"the main thread waits {{share}} of the {{whole}} ({parts})"


def _runs(verdict: Verdict) -> str:
    first = verdict.causes[0][0]
    if first not in OPERATORS:
        return f"{_RUNS[first]} {{share}} of the {{whole}}"
    parts = ", ".join(
        f"{CAUSE_NAMES[cause]} {format_share(part)}"
        for cause, part in verdict.causes
        if part >= _LEAST_SAID and cause is not Cause.OPERATORS
    )
    return f"operators run {{share}} of the {{whole}}{parts and f' ({parts})'}"


@dataclass(frozen=True, slots=True)
class Group:
    """A part of the bar.

    Attributes:
        name: of the group.
        share: of the elapsed time.
        parts: names and shares of its causes, in the order of `Cause`, if the group has several.
    """

    name: str
    share: float
    parts: tuple[tuple[str, float], ...]


def groups_of(found: Account) -> tuple[Group, ...]:
    """Return the parts of the bar in the order of `GROUPS`, also empty ones."""
    whole = found.whole_ns or 1
    return tuple(
        Group(
            name,
            found.of(*causes) / whole,
            tuple(
                (CAUSE_NAMES[cause].removeprefix("wait: "), value / whole)
                for cause, value in found.causes
                if cause in causes and CAUSE_NAMES[cause] != name
            ),
        )
        for name, causes in GROUPS
    )


def base_text(found: Account, leading: Leading, steps: int = 0, *, ranks: int = 1) -> str:
    """Return what the shares of lines are shares of: ``4.96 s of elapsed time``, with `steps` a step.

    Args:
        found: the account.
        leading: its lines.
        steps: number of steps by which to divide, 0 for none.
        ranks: number of ranks by which to divide otherwise.
    """
    each, scale = (" a step", steps) if steps else ("", ranks)
    if leading.by_gpu:
        return f"{format_ns(leading.whole_ns / scale)} of GPU time{each}"
    imports = found.of(Cause.IMPORTING)
    text = f"{format_ns(found.work_ns / scale)} of elapsed time{each}"
    return f"{text} without {format_ns(imports / scale)} of imports" if imports else text


def steady_text(basis: Basis) -> str:
    """Return ``297 steps of 5.22 ms from step 3 on``, "" for another basis."""
    if basis.part is not Part.STEADY:
        return ""
    first = f" from step {format_count(basis.first_step)} on" if basis.first_step > 1 else ""
    mean = f", means of {basis.ranks} ranks" if basis.ranks > 1 else ""
    return f"{format_count(basis.steps)} steps of {format_ns(basis.step_ns)}{first}{mean}"


def setup_text(basis: Basis) -> str:
    """Return what lies outside a steady state: ``9.81 s before step 3: imports 6.10 s, compiling 2.30 s``.

    Times are means of ranks. "" where the basis is no steady state.
    """
    if basis.setup is None:
        return ""
    found = account(basis.setup)

    def time(value_ns: int) -> str:
        return format_ns(value_ns / basis.ranks)

    parts = [(CAUSE_NAMES[cause], found.of(cause)) for cause in (Cause.IMPORTING, Cause.COMPILING)]
    parts += [
        (
            place_text(basis.whole, place.frame) or "outside your code",
            place.without(Cause.COMPILING),
        )
        for place in found.lines
    ]
    least = max(_LEAST_SAID * found.whole_ns, 1)
    largest = sorted((each for each in parts if each[1] >= least), key=lambda each: -each[1])
    named = ", ".join(f"{name} {time(value)}" for name, value in largest[:_MOST_OF_SETUP])
    text = f"{time(basis.setup_ns)} before step {format_count(basis.first_step)}"
    if basis.end_ns >= least:
        text += f", {time(basis.end_ns)} after step {format_count(basis.last_step)}"
    return f"{text}{named and f': {named}'}"


def occasions_text(basis: Basis) -> str:
    """Return what only some steps do: ``every 50th step (7) compiles: 310 ms each at train.py:80``."""
    return "; ".join(_occasion_text(basis, each) for each in basis.occasions)


def _occasion_text(basis: Basis, occasion: Occasion) -> str:
    count, period, is_one = occasion.steps, occasion.period, occasion.steps == 1
    which = (
        f"step {format_count(occasion.numbers[0])}" if is_one else f"{format_count(count)} steps"
    )
    if period:
        which = f"every {format_count(period)}{_ending(period)} step ({format_count(count)})"
    is_singular = is_one or period > 0
    if occasion.kind is OccasionKind.COMPILATION:
        what = "compiles" if is_singular else "compile"
    else:
        is_evaluation = occasion.kind is OccasionKind.EVALUATION
        named = f"an evaluation ({occasion.name})" if is_evaluation else occasion.name
        what = f"{'runs' if is_singular else 'run'} {named}"
    time = f"{format_ns(occasion.time_ns / basis.ranks / count)}{'' if is_one else ' each'}"
    place = place_text(basis.whole, occasion.frame)
    return f"{which} {what}: {time}{place and f' at {place}'}"


def _ending(number: int) -> str:
    """Return what makes a number an ordinal."""
    is_teen = number % 100 in {11, 12, 13}
    return "th" if is_teen else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def place_text(profile: Profile, frame: Frame | None) -> str:
    """Return ``train.py:12``, "" for None."""
    return f"{shorten_path(frame.file, profile.run.cwd)}:{frame.line}" if frame else ""


def causes_text(place: Place, most: int = 2) -> str:
    """Return the names of the largest causes that have at least a fifth of the time.

    A native function that takes most of the running time stands for it: ``list.insert``. Waiting for a
    processor is left out, because it says what the machine did, not the line.
    """
    causes = [item for item in place.causes if item[0] is not Cause.PROCESSOR] or place.causes
    whole = sum(value for _, value in causes)
    largest = sorted(causes, key=lambda item: -item[1])[:most]
    names = [
        (_callee(place) if cause in _RUNNING else "") or CAUSE_NAMES[cause]
        for cause, value in largest
        if value >= whole / 5
    ]
    return ", ".join(dict.fromkeys(names))


def _callee(place: Place) -> str:
    return elide(leading_callee(place), _LONGEST_NAME, ASCII)


def leading_callee(place: Place) -> str:
    """Return the native function that takes most of a line's time between operators, "" for none."""
    running = sum(value for cause, value in place.causes if cause in _RUNNING)
    first = next(iter(place.callees), None)
    return first.name if first and first.time_ns > running / 2 else ""
