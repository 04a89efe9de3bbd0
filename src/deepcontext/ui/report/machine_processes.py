"""The part of the report for programs about several processes of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.profiler.summaries.loader_workers import loader_times
from deepcontext.profiler.summaries.process_waits import process_waits
from deepcontext.profiler.summaries.processes import processes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.loader_workers import LoaderTime
    from deepcontext.profiler.summaries.process_waits import ProcessWait
    from deepcontext.profiler.summaries.processes import Process


def job_to_dict(profiles: Sequence[Profile]) -> dict[str, object]:
    """Return what the report knows about several processes, in JSON's types.

    Args:
        profiles: one for each process of the job, ordered by start.
    """
    processes = processes_of(profiles)
    return {
        "processes": [_process(each) for each in processes],
        "loaders": [_loader(each) for each in loader_times(processes)],
        "waits": [_wait(each) for each in process_waits(processes)],
    }


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
        "ended": process.ended,
        "exit_status": process.end.status,
        "uncovered_ns": process.end.uncovered_ns,
        "process_name": run.process_name,
        "command": list(run.command),
        "file": str(process.profile.source),
    }


def _loader(loader: LoaderTime) -> dict[str, object]:
    return {
        "pid": loader.pid,
        "loops": [_place(frame) for frame in loader.loops],
        "worker_count": loader.worker_count,
        "at_once": loader.at_once,
        "batch_count": loader.batch_count,
        "batch_ns": loader.batch_ns,
        "wait_for_batch_ns": loader.wait_for_batch_ns,
        "making_ns": loader.making_ns,
        "wait_ns": loader.wait_ns,
        "lines": [{**_place(frame), "time_ns": value} for frame, value in loader.lines],
    }


def _wait(wait: ProcessWait) -> dict[str, object]:
    return {
        "waiters": [each.profile.run.pid for each in wait.waiters],
        "waiter_role": wait.waiters[0].role.value,
        "others": [each.profile.run.pid for each in wait.others],
        "other_role": wait.others[0].role.value,
        "wait_ns": wait.wait_ns,
        "share": wait.share,
        "places": [_place(frame) for frame in wait.places],
        "other_ns": wait.other_ns,
        "lines": [{**_place(frame), "time_ns": value} for frame, value in wait.lines],
    }


def _place(frame: Frame) -> dict[str, object]:
    return {"function": frame.name, "file": frame.file, "line": frame.line}
