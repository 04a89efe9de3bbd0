"""Fold the profiles of a job into one partial result, on any engine.

Never holds all profiles at once: a worker loads one after the other and returns one partial result
for 32 files. Invariant: the same files give the same result, whatever their order, the engine and
its number of workers, because files are sorted and parts are joined at fixed places.
"""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext.errors import UserError
from deepcontext.profiler.model.job import kept
from deepcontext.profiler.model.job.artifact import finished, profile_of, read_part
from deepcontext.profiler.model.job.bounds import bounded
from deepcontext.profiler.model.job.joining import join
from deepcontext.profiler.model.job.loading import Refused, load, nothing_left
from deepcontext.profiler.model.job.part import Part, part_of, without_steady
from deepcontext.profiler.model.job.sections import is_job
from deepcontext.profiler.model.job.steady import common_steps, is_within, steady_steps
from deepcontext.profiler.model.one_job import check_one_job
from deepcontext.profiler.model.run_info import ALL_RANKS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from deepcontext.profiler.model.job.engines import Engine
    from deepcontext.profiler.model.job.steady import Steps
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.model.run_info import RunInfo

_FILES_PER_TASK: Final = 32
_JOINED_AT_ONCE: Final = 8  # each rank's rows are then copied log8(ranks) times


@dataclass(frozen=True, slots=True)
class Folded:
    """The result of a fold.

    Attributes:
        part: the joined ranks, ready to be written.
        refused: files that could not be read.
    """

    part: Part
    refused: tuple[Refused, ...]


def fold(
    names: Sequence[str],
    engine: Engine,
    *,
    unrelated: bool = False,
    keep: str = "",
    on_progress: Callable[[int], None] = lambda _: None,
) -> Folded:
    """Join the profiles of a job.

    If no profile knows its rank, ranks are numbered in the order of the names.

    Args:
        names: profiles of single ranks, or of ranks that were joined earlier.
        engine: where files are read and joined.
        unrelated: also join profiles that do not look like processes of one job.
        keep: folder of partial results; results of the same files are reused, others are added; "" for none.
        on_progress: called with the number of files that are done.

    Raises:
        UserError: no file holds a profile, or two profiles have one rank or belong to different jobs.
        ProfileDataError: two call paths have one key.
        EnvironmentProblem: a worker process ended.
    """
    ordered = sorted(names)
    parts = [
        (start, tuple(ordered[start : start + _FILES_PER_TASK]))
        for start in range(0, len(ordered), _FILES_PER_TASK)
    ]
    to_read = [(engine.folder, files) for _, files in parts]
    steady = [each for found in engine.in_order(_steady_steps, to_read) for each in found]
    steps = common_steps(steady)
    tasks = [_Task(start, files, unrelated, engine.folder, keep, steps) for start, files in parts]
    ranked, unranked = _Branch(), _Branch()
    refused: list[Refused] = []
    done = 0
    for result in engine.in_order(_run, tasks):
        ranked.add(result.ranked)
        unranked.add(result.unranked)
        refused += result.refused
        done += result.files
        on_progress(done)
    if not ranked.names and not unranked.names:
        raise nothing_left(len(ordered), refused)
    return Folded(_finished(ranked, unranked, unrelated=unrelated), tuple(refused))


def merge(profiles: Mapping[str, Profile], *, unrelated: bool = False) -> Profile:
    """Return one profile of several loaded profiles of a job, as `fold` joins files.

    If no profile knows its rank, ranks are numbered in the given order.

    Args:
        profiles: at least one profile, by the name used in errors.
        unrelated: also join profiles that do not look like processes of one job.

    Raises:
        UserError: two profiles have one rank, belong to different jobs, or define a metric differently.
        ProfileDataError: two call paths have one key.
    """
    ranked, unranked = _Branch(), _Branch()
    steps = common_steps([steady_steps(profile) for profile in profiles.values()])
    for number, (name, profile) in enumerate(profiles.items()):
        part, run = _part(profile, number, name, "", steps)
        (ranked if run.ranks else unranked).add_file(name, run, part)
    return profile_of(_finished(ranked, unranked, unrelated=unrelated))


def _finished(ranked: _Branch, unranked: _Branch, *, unrelated: bool) -> Part:
    if ranked.names and unranked.names:
        raise UserError(
            f"'{unranked.names[0]}' has no rank, but other profiles have one; name profiles of one "
            "job"
        )
    chosen = ranked if ranked.names else unranked
    if not unrelated:
        check_one_job(chosen.runs)
    return finished(chosen.joined())


def tasks_of(files: int) -> int:
    """Return the number of tasks for a number of files."""
    return -(-files // _FILES_PER_TASK)


@dataclass(frozen=True, slots=True)
class _Task:
    """Files that one worker joins; `start` is the number of the first, `folder` of relative names.

    `keep` is the folder of partial results, `steps` are steady on all ranks.
    """

    start: int
    names: tuple[str, ...]
    unrelated: bool
    folder: str
    keep: str
    steps: Steps | None


@dataclass(slots=True)
class _Branch:
    """Parts of some ranks, joined eight at a time, and what is known about their files.

    Attributes:
        names: the files.
        runs: a run for each part, to compare jobs.
        levels: parts that wait; a part at level n consists of 8**n parts.
    """

    names: list[str] = field(default_factory=list)
    runs: dict[str, RunInfo] = field(default_factory=dict)
    levels: list[list[Part]] = field(default_factory=list)

    def add(self, other: _Branch) -> None:
        self.names += other.names
        self.runs.update(list(other.runs.items())[:1])
        for part in (part for level in other.levels for part in level):
            self._push(part, is_bounded=True)

    def add_file(self, name: str, run: RunInfo, part: Part) -> None:
        self.names.append(name)
        self.runs[name] = run
        self._push(part, is_bounded=False)

    def joined(self) -> Part:
        """Return one part of all."""
        carried: list[Part] = []
        for level in self.levels:
            carried = [join([*level, *carried])] if level or carried else []
        return carried[0]

    def _push(self, part: Part, *, is_bounded: bool) -> None:
        for level in self.levels:
            level.append(part)
            if len(level) < _JOINED_AT_ONCE:
                return
            part = join(level)
            part = bounded(part) if is_bounded else part
            level.clear()
        self.levels.append([part])


@dataclass(frozen=True, slots=True)
class _Result:
    """What a worker returns: one part of the ranks, and one of the other processes."""

    files: int
    ranked: _Branch
    unranked: _Branch
    refused: list[Refused]


def _run(task: _Task) -> _Result:
    """Return the result of one task, kept or computed; this runs in a worker."""
    path = (
        kept.path_of(task.keep, task.names, task.folder, f"{task.unrelated} {task.steps}")
        if task.keep
        else None
    )
    known = kept.read(path) if path is not None else None
    if known is not None:
        profile, part = known
        ranked = _Branch(list(task.names), {task.names[0]: _compared(profile.run, part)}, [[part]])
        return _Result(len(task.names), ranked, _Branch(), [])
    result = _joined_files(task)
    # Files without a rank are numbered by their place among all files, which the kept result does
    # not know.
    if path is not None and not result.refused and not result.unranked.names:
        kept.save(path, result.ranked.joined())
    return result


def _joined_files(task: _Task) -> _Result:
    ranked, unranked = _Branch(), _Branch()
    refused: list[Refused] = []
    for number, name in enumerate(task.names, start=task.start):
        profile = load(name, task.folder)
        if isinstance(profile, Refused):
            refused.append(profile)
            continue
        content = hashlib.blake2b(Path(task.folder, name).read_bytes(), digest_size=8).hexdigest()
        part, run = _part(profile, number, name, content, task.steps)
        branch = ranked if run.ranks else unranked
        branch.add_file(name, run, part)
    if not task.unrelated:
        for branch in (ranked, unranked):
            if branch.names:
                check_one_job(branch.runs)
    return _Result(len(task.names), _compact(ranked), _compact(unranked), refused)


def _steady_steps(task: tuple[str, tuple[str, ...]]) -> list[list[Steps]]:
    """Return the steady windows of each file that can be read; this runs in a worker."""
    folder, names = task
    found = (load(name, folder) for name in names)
    return [steady_steps(profile) for profile in found if not isinstance(profile, Refused)]


def _part(
    profile: Profile, number: int, name: str, content: str, steps: Steps | None
) -> tuple[Part, RunInfo]:
    """Return the part of a file, and a run to compare with other ranks' runs."""
    run = profile.run
    if is_job(profile):
        part = read_part(profile)
        # What was joined cannot be cut again.
        if steps is None or not all(is_within(each, steps) for each in steady_steps(profile)):
            part = without_steady(part)
        return part, _compared(run, part)
    if run.rank == ALL_RANKS:
        raise UserError(
            f"'{name}' was merged by an older version, which did not join ranks; name the profiles of "
            "the single ranks"
        )
    rank = run.rank if run.ranks else number
    return part_of(profile, rank, name=name, content=content, steps=steps), run


def _compared(run: RunInfo, part: Part) -> RunInfo:
    """Return the run of joined ranks as it is compared with runs of single ranks."""
    # A sum of elapsed times is no time span, and the number of joined ranks is not that of the job.
    of = max(row.of for row in part.rows)
    return dataclasses.replace(run, ranks=of, start_unix_ns=0)


def _compact(branch: _Branch) -> _Branch:
    """Return a branch of one part, with one run."""
    if not branch.names:
        return branch
    runs = dict(list(branch.runs.items())[:1])
    return _Branch(branch.names, runs, [[bounded(branch.joined())]])
