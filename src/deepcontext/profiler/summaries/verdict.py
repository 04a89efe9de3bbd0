"""What a run is limited by, in at most three statements; `account.py` has the figures.

Formats nothing. Each statement has a share and says of which whole.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.summaries.account import Cause, account
from deepcontext.profiler.summaries.basis import basis_of

if TYPE_CHECKING:
    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.account import Account, Place
    from deepcontext.profiler.summaries.basis import Basis


class Limit(enum.StrEnum):
    """Kinds of statements."""

    SETUP = "setup"  # share of the whole run, by work before its steady state
    END = "end"  # share of the whole run, by work after its steady state
    END_COMPILES = "end_compiles"  # the same, by compiling
    BUSY_MACHINE = "busy_machine"  # share of the elapsed time that the main thread had no processor
    IMPORTS = "imports"  # share of the elapsed time
    COMPILES = "compiles"  # share of the elapsed time
    GPU_IDLE = "gpu_idle"  # share of the time between the GPU's first and last work
    GPU_BUSY = "gpu_busy"  # the same
    WAITS = "waits"  # share of the time without imports
    RUNS = "runs"  # share of the time without imports


@dataclass(frozen=True, slots=True)
class Verdict:
    """One statement.

    Attributes:
        limit: what kind of statement.
        share: of the whole that `limit` names, 0 to 1.
        causes: what the time was spent on, largest first, with shares of the same whole.
        frame: the line with the most of this time, None where no line of the program has any.
    """

    limit: Limit
    share: float
    causes: tuple[tuple[Cause, float], ...] = ()
    frame: Frame | None = None


OPERATORS: Final = (
    Cause.FORWARD,
    Cause.BACKWARD,
    Cause.RECOMPUTE,
    Cause.OPTIMIZER,
    Cause.LOADING,
    Cause.OPERATORS,
)
WAITS: Final = (
    Cause.DEVICE,
    Cause.DATA,
    Cause.PROCESS,
    Cause.LOCK,
    Cause.GIL,
    Cause.IO,
    Cause.SLEEP,
    Cause.WAITING,
)
# What a main thread does that does not wait, in groups that one statement names together.
RUNS: Final = (
    OPERATORS,
    (Cause.PROGRAMS,),
    (Cause.COLLECTIVES,),
    (Cause.PYTHON, Cause.GARBAGE),
    (Cause.NATIVE,),
    (Cause.OUTSIDE,),
)
_MOST: Final = 3
_BUSY: Final = 0.15
_IMPORTS: Final = 0.4
_COMPILES: Final = 0.25
_LEAST_SET_UP: Final = 0.1
_PART_OF_SET_UP: Final = 0.25
_IDLE: Final = 0.2
_WAITS: Final = 0.2
# A wait, compiling or an idle GPU of this share says enough.
_ENOUGH: Final = 0.5
_LEAST_LINE: Final = 0.01
_FEWEST: Final = 3


def verdicts(profile: Profile) -> tuple[Verdict, ...]:
    """Return the statements about the basis of a profile, the one to read first at the front."""
    basis = basis_of(profile)
    found = account(basis.profile)
    if not found.whole_ns:
        return ()
    said = [*_about_set_up(basis), *_about_the_elapsed_time(found), *_about_the_gpu(found)]
    waits = _group(found, WAITS)
    if waits and waits.share >= _WAITS:
        said.append(waits)
    enough = {Limit.COMPILES, Limit.WAITS, Limit.GPU_IDLE}
    if not any(each.share >= _ENOUGH for each in said if each.limit in enough):
        groups = [each for causes in RUNS if (each := _group(found, causes))]
        said += sorted(groups, key=lambda each: -each.share)[:1]
    return tuple(said[:_MOST])


def busy_machine(found: Account) -> float:
    """Return the share of the elapsed time without a processor, 0 if it is too small to change figures."""
    share = found.ready_ns / found.whole_ns if found.whole_ns else 0.0
    return share if share >= _BUSY else 0.0


def gpu_leads(found: Account) -> bool:
    """Return whether the GPU limits the run, so that GPU time says where to look."""
    gpu = found.gpu
    return gpu is not None and gpu.is_idle_known and gpu.idle_ns < _ENOUGH * gpu.span_ns


@dataclass(frozen=True, slots=True)
class Leading:
    """The lines to look at first.

    Attributes:
        by_gpu: whether they are ordered by GPU time, not by elapsed time.
        whole_ns: the whole of the values in `by_gpu`'s measure: GPU time, or elapsed time without imports.
        lines: largest first, without those below a hundredth of the whole after the first three.
    """

    by_gpu: bool
    whole_ns: int
    lines: tuple[Place, ...]

    def value(self, place: Place) -> int:
        """Return the time of a line that orders it, in ns."""
        return place.gpu_ns if self.by_gpu else place.time_ns


def leading_lines(found: Account) -> Leading:
    """Return the lines of an account in the measure that limits the run."""
    by_gpu = gpu_leads(found)
    whole = found.gpu.busy_ns if by_gpu and found.gpu else found.work_ns
    leading = Leading(by_gpu, whole, found.lines)
    ordered = sorted(found.lines, key=lambda place: -leading.value(place))
    notable = [
        place
        for number, place in enumerate(ordered)
        if (value := leading.value(place)) and (value >= _LEAST_LINE * whole or number < _FEWEST)
    ]
    return replace(leading, lines=tuple(notable))


def leading_set_up(basis: Basis) -> Account | None:
    """Return the account of what is before and after the steady state, if the program works long there.

    That is at least half as long as in its steady state, and a notable part of the run.
    """
    if basis.setup is None:
        return None
    found = account(basis.setup)
    steady, whole = account(basis.profile).whole_ns, account(basis.whole).whole_ns
    return found if _work_ns(found) >= max(steady / 2, _LEAST_SET_UP * whole) else None


def _work_ns(found: Account) -> int:
    return found.work_ns - found.of(Cause.COMPILING, Cause.UNKNOWN)


def _about_set_up(basis: Basis) -> list[Verdict]:
    if basis.setup is None:
        return []
    leading, whole = leading_set_up(basis), account(basis.whole).whole_ns
    said = []
    before, after = (each and account(each) for each in basis.before_and_after())
    for limit, found in ((Limit.SETUP, before), (Limit.END, after)):
        is_part = found and leading and _work_ns(found) >= _PART_OF_SET_UP * _work_ns(leading)
        if found and is_part:
            causes = tuple(cause for cause in Cause if cause is not Cause.COMPILING)
            said.append(Verdict(limit, _work_ns(found) / whole, frame=_most(found, causes)))
    # What is compiled before is not compiled again, however long the program runs.
    if after and (compiles := after.of(Cause.COMPILING) / whole) >= _COMPILES:
        frame = _most(after, (Cause.COMPILING,))
        said.append(Verdict(Limit.END_COMPILES, compiles, frame=frame))
    return said


def _about_the_elapsed_time(found: Account) -> list[Verdict]:
    said = []
    if busy := busy_machine(found):
        said.append(Verdict(Limit.BUSY_MACHINE, busy))
    imports = found.of(Cause.IMPORTING) / found.whole_ns
    if imports >= _IMPORTS:
        frame = next((place.frame for place in found.imports if place.frame), None)
        said.append(Verdict(Limit.IMPORTS, imports, frame=frame))
    compiles = found.of(Cause.COMPILING) / found.whole_ns
    if compiles >= _COMPILES:
        said.append(Verdict(Limit.COMPILES, compiles, frame=_most(found, (Cause.COMPILING,))))
    return said


def _about_the_gpu(found: Account) -> list[Verdict]:
    gpu = found.gpu
    if gpu is None or not gpu.is_idle_known:
        return []
    idle = gpu.idle_ns / gpu.span_ns
    if idle >= _IDLE:
        return [Verdict(Limit.GPU_IDLE, idle, frame=gpu.late[0][0] if gpu.late else None)]
    return [Verdict(Limit.GPU_BUSY, gpu.busy_ns / gpu.span_ns)]


def _group(found: Account, causes: tuple[Cause, ...]) -> Verdict | None:
    """Return a statement about the time of some causes; None where there is none."""
    whole = found.work_ns
    parts = {cause: found.of(cause) / whole for cause in causes if found.of(cause)} if whole else {}
    if not parts:
        return None
    largest = sorted(parts.items(), key=lambda item: -item[1])
    limit = Limit.WAITS if causes is WAITS else Limit.RUNS
    return Verdict(limit, sum(parts.values()), tuple(largest), _most(found, causes))


def _most(found: Account, causes: tuple[Cause, ...]) -> Frame | None:
    """Return the line with the most time of some causes."""

    def time(place: Place) -> int:
        return sum(value for cause, value in place.causes if cause in causes)

    places = [place for place in found.lines if place.frame and time(place)]
    return max(places, key=time).frame if places else None
