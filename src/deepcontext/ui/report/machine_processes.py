"""The processes of a job in the report for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.profiler.summaries.processes import processes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.processes import Process


def processes_to_list(profiles: Sequence[Profile]) -> list[dict[str, object]]:
    """Return all processes of a job in JSON's types, a parent before its children."""
    return [_process(each) for each in processes_of(profiles)]


def _process(process: Process) -> dict[str, object]:
    run = process.profile.run
    return {
        "pid": run.pid,
        "parent_pid": run.parent_pid,
        "role": process.role.value,
        "rank": process.rank,
        "attempt": run.attempt,
        "hostname": run.hostname,
        "start_unix_ns": run.start_unix_ns,
        "wall_ns": run.wall_ns,
        "cpu_ns": process.cpu_ns,
        "share": process.share,
        "exit_reason": run.exit_reason,
        "process_name": run.process_name,
        "command": list(run.command),
        "file": str(process.profile.source),
    }
