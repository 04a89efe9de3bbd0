"""What a command reads: profiles, or a run directory with a profile of each process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from deepcontext.errors import UserError
from deepcontext.profiler.format import run_directory
from deepcontext.ui.cli.whole_job import whole_job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.profile import Profile


def files_of(names: Sequence[str]) -> list[str]:
    """Return the files that the words of a command line name; a run directory stands for its profiles.

    Raises:
        UserError: a run directory holds no profile.
    """
    return [file for name in names for file in (_files_in(name) or [name])]


def load_all(name: str) -> list[Profile]:
    """Return the profile of a file, or all profiles of a run directory.

    Raises:
        UserError: there is no such file, or the run directory holds no profile.
        ProfileDataError: a file is not a profile, is damaged, or is too new for this build.
    """
    from deepcontext.profiler.model.profile import Profile  # noqa: PLC0415  imports numpy

    return [Profile.load(file) for file in files_of([name])]


def chosen_of(profiles: Sequence[Profile], name: str, *, process: str | None = None) -> Profile:
    """Return the profile to show: all ranks of a job, else the process with the most processor time.

    Prints a notice if there are several. A launcher is shown only where it is the only process.

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
        return profiles[0]
    chosen, what = whole_job(profiles, Path(name))
    if chosen is None:
        chosen = busiest(processes_of(profiles)).profile
        if what:
            print(f"[deepcontext] {what}", file=sys.stderr)
        what = (
            f"process {chosen.run.pid}, which used the processor most ('{_shown(chosen.source)}')"
        )
    print(
        f"[deepcontext] '{_shown(name)}' holds the profiles of {len(profiles)} processes"
        f"{run_directory.left_out_text(Path(name))}; what follows is {what}",
        file=sys.stderr,
    )
    return chosen


def load_one(name: str) -> Profile:
    """Return the profile of a file; of a run directory, all ranks together or the busiest process.

    Raises:
        UserError: there is no such file, or the run directory holds no profile.
        ProfileDataError: a file is not a profile, is damaged, or is too new for this build.
    """
    return chosen_of(load_all(name), name)


def _shown(path: str) -> str:
    """Return a path without the current folder, which `deepcontext profile` puts before it."""
    folder = Path.cwd()
    return str(Path(path).relative_to(folder)) if Path(path).is_relative_to(folder) else path


def _files_in(name: str) -> list[str]:
    run = Path(name)
    if not run_directory.is_run(run):
        return []
    files = [str(path) for path in run_directory.profiles(run)]
    if not files:
        raise UserError(
            f"cannot read '{name}': the run directory holds no profile; perhaps the program has not started"
        )
    return files
