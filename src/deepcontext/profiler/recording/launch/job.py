"""Which job a rank belongs to, and the run directory that all its ranks write.

Runs in `deepcontext profile`, before it becomes the program. Invariant: ranks of one job on one host
get the same identity, however many shells stand between them and the launcher.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from deepcontext.profiler.format import host_folder, run_directory
from deepcontext.profiler.recording.launch.command import children_note
from deepcontext.profiler.recording.rank import local_rank

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepcontext.profiler.recording.launch.options import LaunchOptions
    from deepcontext.profiler.recording.rank import Rank

_ERROR_FILE: Final = "TORCHELASTIC_ERROR_FILE"
_PMIX: Final = "PMIX_NAMESPACE"
_SLURM: Final = "slurm"
_MOST_ANCESTORS: Final = 64


class _Process(NamedTuple):
    """A process as `/proc/PID/stat` has it."""

    parent: int
    start_ticks: str


def join_run_directory(options: LaunchOptions, rank: Rank) -> Path:
    """Return the path for this rank's profile in the run directory of its job; make the directory.

    Args:
        options: `job` is the directory.
        rank: what the launcher says.

    Raises:
        UserError: the directory cannot or may not be made.
        EnvironmentProblem: the machine fails to make the directory.
    """
    attempt = local_rank().attempt
    name = run_directory.rank_name(rank.number, attempt)
    identity = job_identity(rank, os.environ)
    writer = host_folder.Writer(
        identity,
        name,
        is_restart=attempt > 0,
        is_same_everywhere=identity.startswith((_SLURM, _PMIX)),
    )
    run = Path(options.job)
    content = host_folder.Content(options.script, children_note(options))
    return host_folder.join(run, writer, content)


def job_identity(rank: Rank, environment: Mapping[str, str]) -> str:
    """Return a text that ranks of one job on one host share, and no other job has.

    Args:
        rank: what the launcher says; its source is a variable.
        environment: the variables of this process.
    """
    match rank.source:
        case "RANK" if "/attempt_" in environment.get(_ERROR_FILE, ""):
            # torchrun makes this folder new for each job, and one inside it for each attempt.
            return environment[_ERROR_FILE].rpartition("/attempt_")[0]
        case "SLURM_PROCID":
            names = ("SLURM_JOB_ID", "SLURM_STEP_ID")
            return f"{_SLURM} " + ".".join(environment.get(name, "") for name in names)
        case "OMPI_COMM_WORLD_RANK" if _PMIX in environment:
            return f"{_PMIX} {environment[_PMIX]}"
        case _:
            return _launcher_process(rank.source)


def _launcher_process(variable: str) -> str:
    """Return the identity of the nearest ancestor that the launcher did not give a rank."""
    pid = os.getppid()
    for _ in range(_MOST_ANCESTORS):
        if pid <= 1 or not _has_variable(pid, variable):
            break
        pid = _process(pid).parent
    boot = _text(Path("/proc/sys/kernel/random/boot_id")).strip()
    return f"process {pid} {_process(pid).start_ticks} {boot}"


def _has_variable(pid: int, variable: str) -> bool:
    # A process of another user, such as Slurm's, is no shell below the launcher: reads as "".
    return f"\0{variable}=" in "\0" + _text(Path(f"/proc/{pid}/environ"))


def _process(pid: int) -> _Process:
    fields = _text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return _Process(int(fields[1]), fields[19]) if fields else _Process(0, "")


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
