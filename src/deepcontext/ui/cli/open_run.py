"""The profiles that the page opens: files, or the processes of a job, named by their roles.

For a job, the first profile to show is read at once, the others when the page requests them.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext.errors import UserError
from deepcontext.profiler.format import run_directory
from deepcontext.profiler.importing.opening import load
from deepcontext.profiler.model.job.union import united
from deepcontext.profiler.summaries.processes import busiest, processes_of
from deepcontext.profiler.summaries.roles import Role
from deepcontext.profiler.summaries.similar_processes import by_role
from deepcontext.ui.cli.inputs import files_of
from deepcontext.ui.cli.whole_job import whole_job
from deepcontext.ui.format import format_count, format_share
from deepcontext.ui.process_texts import count_text, role_text
from deepcontext.ui.web.answers import RoleRow
from deepcontext.ui.web.jobs import job_answer, renumbered
from deepcontext.ui.web.open_profiles import (
    MOST_COMPARED,
    Contents,
    Deferred,
    OpenProfile,
    OpenProfiles,
    as_it_is,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.processes import Process
    from deepcontext.ui.web.answers import JobAnswer

    Entry = OpenProfile | Deferred

_TOGETHER: Final = "all ranks together"
# Nodes of all processes whose trees are joined on demand, in a few seconds.
_MOST_NODES: Final = 4_000_000
_NONE: Final = -1
# For a single run directory, the first process is compared with all processes together.
_COMPARED_OF_RUN: Final = 2


@dataclass(slots=True)
class _Source:
    """The profiles of one word of the command line; the job counts its files among `entries`."""

    entries: list[Entry]
    job: JobAnswer | None = None


def open_profiles(
    names: Sequence[str],
    *,
    source_text: bool,
    peaks: str | None = None,
    part_of: Callable[[Profile], Profile] = as_it_is,
) -> OpenProfiles:
    """Read what the words of a command line name.

    Only a run directory is a job: runs of files named one by one may have process numbers in common.
    The first profile of a run directory is the one that its report shows: all ranks together, or
    the process that used the most processor time. The first profiles of all words come first,
    because they are compared.

    Args:
        names: files and run directories.
        source_text: whether source files named in the profiles may be read.
        peaks: file with the peaks of the machine of the runs; None for those that are known here.
        part_of: returns the part of a profile to show.

    Raises:
        UserError: a file cannot be read, a run directory holds no profile, or these are more runs than
            the page compares.
        ProfileDataError: a file is not a profile.
    """
    if len(names) > MOST_COMPARED:
        raise UserError(
            f"cannot compare {len(names)} runs: the page compares up to {MOST_COMPARED}; open fewer"
        )
    words = _Words(names)
    found = words.read()
    opened = OpenProfiles(
        found.profiles,
        source_text=source_text,
        jobs=found.jobs,
        compared=found.compared,
        peaks=peaks,
        part_of=part_of,
    )
    opened.origin = words
    return opened


class _Words:
    """What the words of a command line name, and which files the run directories had when they were read."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._files: dict[str, object] = {}

    def read(self) -> Contents:
        """Read all that is named."""
        self._files = self._files_now()
        names = self._names
        sources = [_source(name) for name in names]
        entries = [
            (n, index) for n, source in enumerate(sources) for index in range(len(source.entries))
        ]
        entries.sort(key=lambda place: place[1] > 0)
        place = {each: number for number, each in enumerate(entries)}
        jobs = [
            renumbered(
                source.job, {index: number for (of, index), number in place.items() if of == n}
            )
            for n, source in enumerate(sources)
            if source.job is not None
        ]
        return Contents(
            _told_apart([sources[n].entries[index] for n, index in entries], names),
            jobs,
            max(len(names), _COMPARED_OF_RUN),
        )

    def changed(self) -> str:
        """Return the run directory whose profiles are others now, "" for none."""
        now = self._files_now()
        return next((run for run, files in now.items() if files != self._files.get(run)), "")

    def _files_now(self) -> dict[str, object]:
        return {
            name: _stamps(Path(name)) for name in self._names if run_directory.is_run(Path(name))
        }


def _stamps(run: Path) -> dict[Path, tuple[int, int]]:
    """Return size and modification time of each profile of a run."""
    stamps = {}
    for path in run_directory.profiles(run):
        with contextlib.suppress(FileNotFoundError):  # the process that wrote it has moved it
            status = path.stat()
            stamps[path] = status.st_size, status.st_mtime_ns
    return stamps


def _told_apart(entries: Sequence[Entry], words: Sequence[str]) -> list[Entry]:
    """Return all profiles; those of the words are named by their words where names are the same."""
    count = Counter(entry.name for entry in entries[: len(words)])
    named = [
        replace(entry, name=f"{tail}: {entry.name}" if run_directory.is_run(Path(word)) else tail)
        if count[entry.name] > 1
        else entry
        for entry, word, tail in zip(entries, words, _tails(words), strict=False)
    ]
    return [*named, *entries[len(words) :]]


def _tails(words: Sequence[str]) -> list[str]:
    """Return the shortest ends of paths that make the paths distinct, as far as the paths differ."""
    parts = [Path(word).parts for word in words]
    for length in range(1, max(map(len, parts))):
        tails = [each[-length:] for each in parts]
        if len(set(tails)) == len(set(parts)):
            return [str(Path(*each)) for each in tails]
    return list(words)


def _source(name: str) -> _Source:
    files = files_of([name])
    if not run_directory.is_run(Path(name)) or len(files) == 1:
        return _Source([OpenProfile.read(Path(file)) for file in files])
    run = Path(name)
    profiles = [load(file) for file in files]
    job = _Job(run.resolve().name, processes_of(profiles))
    whole, told = whole_job(profiles, run)
    notes = [text for text in (told if whole is None else "", _not_recorded(run)) if text]
    if whole is not None:
        job.entries.append(OpenProfile.of_memory(whole, _TOGETHER))
        job.add_processes(range(len(job.processes)))
        return job.source(notes, ranks=whole.run.ranks)
    first = job.processes.index(busiest(job.processes))
    job.add_processes([first], at_once=True)
    job.add_processes(n for n in range(len(job.processes)) if n != first)
    return job.source(notes)


def _not_recorded(run: Path) -> str:
    return run_directory.left_out_text(run).strip(" ()")


@dataclass(slots=True)
class _Job:
    """Collects the profiles of a job: of its processes, then of several processes together.

    Attributes:
        name: name of the job.
        processes: its processes.
        entries: the profiles so far.
        files: for each process the index of its profile among them.
    """

    name: str
    processes: list[Process]
    entries: list[Entry] = field(default_factory=list)
    files: dict[int, int] = field(default_factory=dict)

    def add_processes(self, numbers: Iterable[int], *, at_once: bool = False) -> None:
        """Add the profiles of some processes, to be read at once or on demand."""
        for number in numbers:
            process = self.processes[number]
            path = Path(process.profile.source)
            name = _name(process, self.processes)
            self.files[number] = len(self.entries)
            self.entries.append(
                replace(OpenProfile.read(path), name=name)
                if at_once
                else Deferred(name, partial(OpenProfile.read, path))
            )

    def source(self, notes: Sequence[str], *, ranks: int = 0) -> _Source:
        """Return all profiles, after adding those of the roles and of the whole job.

        Args:
            notes: what a reader must know about the job.
            ranks: number of ranks that the first profile has together, 0 for none.
        """
        roles = by_role(self.processes)
        everything = list(range(len(self.processes)))
        is_first = ranks > 0 and len(roles) == 1
        name = f"whole job, {format_count(len(everything))} processes"
        rows = [self._together(name, everything, 0 if is_first else None)]
        for role, members in roles.items():
            is_first = role is Role.RANK and ranks > 0
            name = count_text(role, ranks if is_first else len(members))
            rows.append(self._together(name, members, 0 if is_first else None))
        files = [self.files[number] for number in everything]
        if any(row.file == _NONE for row in rows):
            notes = [
                *notes,
                f"trees with more than {format_count(_MOST_NODES)} nodes are not joined",
            ]
        return _Source(self.entries, job_answer(self.name, self.processes, files, rows, notes))

    def _together(self, name: str, members: Sequence[int], file: int | None) -> RoleRow:
        """Return the row of several processes, and add their profile unless it is `file`."""
        found = [self.processes[number] for number in members]
        if len(members) == 1:
            file = self.files[members[0]]
        elif file is None and sum(len(each.profile.tree) for each in found) > _MOST_NODES:
            file = _NONE
        elif file is None:
            file = len(self.entries)
            make = partial(_united, [each.profile.source for each in found], name)
            self.entries.append(Deferred(f"{name} together", make))
        return RoleRow(name, file, sum(each.cpu_ns for each in found))


def _united(paths: Sequence[str], name: str) -> OpenProfile:
    return OpenProfile.of_memory(united([load(path) for path in paths]), name)


def _name(process: Process, processes: Sequence[Process]) -> str:
    """Return ``DataLoader worker 123 of rank 0, 3.1 %, killed by SIGKILL``.

    The role comes first, because the list is narrow.
    """
    run = process.profile.run
    # The tree has a process before its children.
    above = [each for each in processes[: processes.index(process)] if each.depth < process.depth]
    rank = above[-1].rank if above else None
    of_rank = "" if rank is None else f" of rank {rank}"
    end = f", {process.ended}" if process.ended else ""
    return f"{role_text(process)} {run.pid}{of_rank}, {format_share(process.share)}{end}"
