"""What a command reads: profiles, or a run directory with a profile of each process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext.errors import UserError
from deepcontext.profiler.format import run_directory
from deepcontext.ui.cli.profile_outputs import run_beside
from deepcontext.ui.cli.whole_job import MOST_MERGED, merged_before, merged_text, whole_job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.ui.cli.command import Parser

ANY_PROFILE: Final = "profile (*.dcprof), run directory (*.dcrun) or file of another profiler"


def files_of(names: Sequence[str]) -> list[str]:
    """Return the files that the words of a command line name; a run directory stands for its profiles.

    So does a folder of files of another tool.

    Raises:
        UserError: a run directory holds no profile.
    """
    return [file for name in names for file in (_files_in(name) or [name])]


def load_all(name: str) -> list[Profile]:
    """Return the profile of a file, which another tool may have written, or all profiles of a run directory.

    Raises:
        UserError: there is no such file, or the run directory holds no profile.
        ProfileDataError: a file is not a profile, is damaged, or is too new for this build.
    """
    from deepcontext.profiler.importing.opening import load  # noqa: PLC0415  imports numpy

    return [load(file) for file in files_of([name])]


def chosen_of(profiles: Sequence[Profile], name: str, *, process: str | None = None) -> Profile:
    """Return the profile to show: all ranks of a job, or the process with the most processor time.

    Prints a notice if there are several. A launcher is shown only if it is the only process.

    Args:
        profiles: at least one.
        name: source of the profiles, as the user typed it.
        process: the process that the user wants, by number or rank; None for the choice above.

    Raises:
        UserError: there is no such process.
    """
    from deepcontext.profiler.summaries.processes import (  # noqa: PLC0415  imports numpy
        busiest,
        named,
        processes_of,
    )

    if process is not None:
        return named(processes_of(profiles), process).profile
    if len(profiles) == 1:
        _tell_of_others(name)
        return profiles[0]
    chosen, what = whole_job(profiles, Path(name))
    if chosen is None:
        chosen = busiest(processes_of(profiles)).profile
        if what:
            print(f"[deepcontext] {what}", file=sys.stderr)
        what = f"process {chosen.run.pid}, which used the most processor time ('{_shown(chosen.source)}')"
    _tell_choice(name, len(profiles), what)
    return chosen


def peaks_option(parser: Parser) -> None:
    """Add `--peaks` to a command whose answer depends on the machine's peaks."""
    parser.option(
        "--peaks",
        metavar="FILE",
        help="JSON file with the peaks of the machine of the run, instead of those in the profile; its "
        "form is in the documentation, under 'Measure peaks'",
    )


def merged_of_many(name: str) -> Profile | None:
    """Return the merged profile of a run directory that holds too many profiles to load them all.

    Prints a notice. None for any other directory or file, and if a process's profile is newer.
    """
    run = Path(name)
    is_large = run_directory.is_run(run) and len(run_directory.profiles(run)) > MOST_MERGED
    return _merged(name) if is_large else None


def load_one(name: str) -> Profile:
    """Return the profile of a file; for a run directory, all ranks together or the busiest process.

    Raises:
        UserError: there is no such file, or the run directory holds no profile.
        ProfileDataError: a file is not a profile, is damaged, or is too new for this build.
    """
    return load_one_of(name)[0]


def load_one_of(name: str) -> tuple[Profile, list[Profile]]:
    """Return what `load_one` returns, and the profiles of all processes, if they were loaded."""
    merged = _merged(name)
    if merged is not None:
        return merged, []
    profiles = load_all(name)
    return chosen_of(profiles, name), profiles


def _merged(name: str) -> Profile | None:
    """Return the merged profile of a run directory without loading the others, and print a notice."""
    run = Path(name)
    files = run_directory.profiles(run) if run_directory.is_run(run) else []
    merged = merged_before(run, files) if files else None
    if merged is not None:
        _tell_choice(name, len(files), merged_text(merged))
    return merged


def _tell_choice(name: str, count: int, what: str) -> None:
    print(
        f"[deepcontext] '{_shown(name)}' holds the profiles of {count} processes"
        f"{run_directory.left_out_text(Path(name))}; what follows is {what}",
        file=sys.stderr,
    )


def _tell_of_others(name: str) -> None:
    """Say that a profile is of one process of a run, if the run directory of its program is beside it."""
    path, run = Path(name), Path(run_beside(name))
    if path == run or not run_directory.is_run(run):
        return
    files = run_directory.profiles(run)
    if len(files) > 1 and any(each.samefile(path) for each in files):
        print(
            f"[deepcontext] '{_shown(name)}' is the profile of one process; '{_shown(str(run))}' holds "
            f"those of all {len(files)}",
            file=sys.stderr,
        )


def _shown(path: str) -> str:
    """Return a path without the current folder, which `deepcontext profile` puts before it."""
    folder = Path.cwd()
    return str(Path(path).relative_to(folder)) if Path(path).is_relative_to(folder) else path


def _traces_in(folder: Path) -> list[str]:
    """Return the files of other tools in a folder, which has one of each rank; none for anything else."""
    if not folder.is_dir():
        return []
    from deepcontext.profiler.importing.opening import foreign_files  # noqa: PLC0415  imports numpy

    return foreign_files(folder)


def _files_in(name: str) -> list[str]:
    run = Path(name)
    if not run_directory.is_run(run):
        return _traces_in(run)
    files = [str(path) for path in run_directory.profiles(run)]
    if not files:
        raise UserError(
            f"cannot read '{name}': the run directory holds no profile; perhaps the program has not started"
        )
    return files
