"""The profiles that the page opens: files, or the processes of a run directory, named by their roles."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from deepcontext.profiler.format import run_directory
from deepcontext.profiler.summaries.processes import busiest, processes_of
from deepcontext.ui.cli.inputs import files_of
from deepcontext.ui.cli.whole_job import whole_job
from deepcontext.ui.format import format_share
from deepcontext.ui.report.processes import role_text
from deepcontext.ui.web.open_profiles import OpenProfile, OpenProfiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.summaries.processes import Process

_TOGETHER = "all ranks together"


def open_profiles(names: Sequence[str], *, source_text: bool) -> OpenProfiles:
    """Read what the words of a command line name.

    The first profile of a run directory is the one that its report shows: all ranks together, or the
    process that used the processor most.

    Args:
        names: files and run directories.
        source_text: whether source files named in the profiles may be read.

    Raises:
        UserError: a file cannot be read, or a run directory holds no profile.
        ProfileDataError: a file is not a profile.
    """
    opened: list[OpenProfile] = []
    for name in names:
        files = [OpenProfile.read(Path(file)) for file in files_of([name])]
        run = Path(name)
        is_job = run_directory.is_run(run) and len(files) > 1
        opened += _of_run(files, run) if is_job else files
    return OpenProfiles(opened, source_text=source_text)


def _of_run(files: Sequence[OpenProfile], run: Path) -> list[OpenProfile]:
    """Return the processes of a run directory, the one to show first, the others as in the report."""
    profiles = [each.profile for each in files]
    processes = processes_of(profiles)
    whole, _ = whole_job(profiles, run)
    first = None if whole is not None else busiest(processes)
    ordered = sorted(processes, key=lambda each: each is not first)
    by_profile = {id(each.profile): each for each in files}
    named = [replace(by_profile[id(each.profile)], name=_name(each, processes)) for each in ordered]
    return named if whole is None else [OpenProfile.of_memory(whole, _TOGETHER), *named]


def _name(process: Process, processes: Sequence[Process]) -> str:
    """Return ``DataLoader worker 123 of rank 0, 3.1 %, killed by SIGKILL``.

    The role comes first, because the list is narrow.
    """
    run = process.profile.run
    parent = (run.hostname, run.parent_pid)
    of_rank = next(
        (
            f" of rank {each.rank}"
            for each in processes
            if each.rank is not None and (each.profile.run.hostname, each.profile.run.pid) == parent
        ),
        "",
    )
    end = f", {process.ended}" if process.ended else ""
    return f"{role_text(process)} {run.pid}{of_rank}, {format_share(process.share)}{end}"
