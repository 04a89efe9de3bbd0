"""The processes of a job, the workers of its DataLoaders, and who waits for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.model.source import line_text_of_any
from deepcontext.profiler.summaries.loader_workers import loader_times
from deepcontext.profiler.summaries.process_waits import process_waits
from deepcontext.profiler.summaries.processes import processes_of, shortened
from deepcontext.profiler.summaries.roles import Role
from deepcontext.ui.format import format_count, format_ns, shorten_path
from deepcontext.ui.process_texts import ends_text, role_text
from deepcontext.ui.sections.table import Column, Table, Unit, picked, share
from deepcontext.ui.sections.view import line_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.loader_workers import LoaderTime
    from deepcontext.profiler.summaries.process_waits import ProcessWait
    from deepcontext.profiler.summaries.processes import Process
    from deepcontext.ui.sections.table import Row

_MOST_PROCESSES: Final = 12
_MOST_LOADERS: Final = 3
_MOST_WAITS: Final = 4
_LEAST_WAIT: Final = 0.05
_LEAST_LINE_OF_LOADER: Final = 0.01
_LEAST_LINE: Final = 0.02
_PROCESS: Final = (
    Column("pid", "process", Unit.NUMBER),
    Column("role", "role", Unit.TEXT),
    Column("hostname", "host", Unit.TEXT, rank=4),
    Column("wall_ns", "elapsed", Unit.NS, rank=2),
    Column("cpu_ns", "processor", Unit.NS, rank=3),
    Column("share", "share", Unit.SHARE),
    Column("ended", "ended", Unit.TEXT, rank=1),
    Column("uncovered", "not covered", Unit.NUMBER, rank=5),
    Column("program", "program", Unit.NAME),
)
_WAIT: Final = (
    Column("wait_ns", "waits", Unit.NS),
    Column("share", "share", Unit.SHARE),
    Column("waiters", "process", Unit.TEXT),
    Column("others", "for", Unit.TEXT),
    Column("time_ns", "spent", Unit.NS),
    Column("place", "in line", Unit.PATH),
    Column("source", "source", Unit.SOURCE, rank=1),
)


def processes(profiles: Sequence[Profile]) -> Table:
    """Return a row for each process, children below their parent; similar ones of many as one row."""
    found = processes_of(profiles)
    shown, folded = shortened(found, _MOST_PROCESSES)
    hosts = len({profile.run.hostname for profile in profiles}) > 1
    rows: list[Row] = [
        {
            "pid": process.profile.run.pid,
            "role": "  " * process.depth + role_text(process),
            "hostname": process.profile.run.hostname * hosts,
            "wall_ns": process.profile.run.wall_ns,
            **picked(process, "cpu_ns", "share", "ended", "program"),
            "uncovered": f"up to {format_ns(process.end.uncovered_ns)}"
            if process.end.uncovered_ns
            else "",
        }
        for process in shown
    ]
    rows += [
        {
            **dict.fromkeys((str(column.value) for column in _PROCESS), ""),
            "role": f"{each.count} more {each.role.value if each.count == 1 else each.role.plural}",
            **picked(each, "cpu_ns", "share"),
            "ended": ends_text(each.ends),
        }
        for each in folded
    ]
    note = "children below their parent, share of processor time"
    return Table(f"Processes ({len(profiles)})", note, _PROCESS, rows)


def loaders(found: Sequence[Process]) -> list[Table]:
    """Return how long batches take, and where; of the loops that wait longest."""
    times = loader_times(found)
    tables = [_loader(loader, found) for loader in times[:_MOST_LOADERS]]
    if len(times) > _MOST_LOADERS:
        more = f"{len(times) - _MOST_LOADERS} more loops with workers wait less"
        tables.append(Table("", "", (), (), above=more))
    return tables


def _loader(loader: LoaderTime, found: Sequence[Process]) -> Table:
    return Table(
        f"DataLoader workers of process {loader.pid}",
        "elapsed time of all workers",
        (
            Column("time_ns", "time", Unit.NS),
            share("time_ns", loader.making_ns),
            Column("place", "line", Unit.PATH),
            Column("source", "source", Unit.SOURCE, rank=1),
        ),
        _lines(loader.lines, _LEAST_LINE_OF_LOADER * loader.making_ns, found),
        above=_sentence(loader, found[0].profile.run.cwd),
    )


def _lines(lines: Sequence[tuple[Frame, int]], least: float, found: Sequence[Process]) -> list[Row]:
    cwd, profiles = found[0].profile.run.cwd, [each.profile for each in found]
    return [
        {
            "time_ns": value,
            "place": _place(frame, cwd),
            "source": line_text_of_any(profiles, frame.file, frame.line) or frame.name,
        }
        for frame, value in lines
        if value >= least
    ]


def _sentence(loader: LoaderTime, cwd: str) -> str:
    every = format_ns(loader.batch_ns // loader.at_once)
    together = f", so {loader.at_once} workers make a batch every {every}"
    where = " and ".join(_place(frame, cwd) for frame in loader.loops)
    return (
        f"one worker takes {format_ns(loader.batch_ns)} for a batch{together * (loader.at_once > 1)}; "
        f"the loop at {where or 'an unknown line'} waits {format_ns(loader.wait_for_batch_ns or None)} for "
        f"each of {format_count(loader.batch_count)} batches"
    )


def _place(frame: Frame, cwd: str) -> str:
    path = shorten_path(frame.file, cwd)
    return f"{path.rpartition('/site-packages/')[2]}:{frame.line}"


def waits(found: Sequence[Process]) -> Table:
    """Return who waits for whom, and the lines in which the others spend their time.

    Leaves out what the tables of DataLoader workers say, and short waiting.
    """
    told = [
        each
        for each in process_waits(found)
        if each.share >= _LEAST_WAIT
        and Role.LOADER not in {each.waiters[0].role, each.others[0].role}
    ]
    more = f"{len(told) - _MOST_WAITS} more groups of processes wait less"
    return Table(
        "Waiting for other processes",
        "main threads in queues, pipes and results; lines of the others in their whole run",
        _WAIT,
        [row for wait in told[:_MOST_WAITS] for row in _wait_rows(wait, found)],
        below=more * (len(told) > _MOST_WAITS),
    )


def _wait_rows(wait: ProcessWait, found: Sequence[Process]) -> list[Row]:
    head = {
        "wait_ns": wait.wait_ns,
        "share": wait.share,
        "waiters": _named(wait.waiters),
        "others": _named(wait.others),
    }
    lines = _lines(wait.lines, _LEAST_LINE * wait.other_ns, found)
    lines = lines or [{"time_ns": "", "place": "no line of your code", "source": ""}]
    return [{**(dict.fromkeys(head, "") if n else head), **line} for n, line in enumerate(lines)]


def _named(processes: Sequence[Process]) -> str:
    """Return ``program 123``, ``4 pool workers``."""
    first = processes[0]
    if len(processes) == 1:
        return f"{first.role.value} {first.profile.run.pid}"
    roles = {each.role for each in processes}
    return f"{len(processes)} {first.role.plural if len(roles) == 1 else 'processes'}"


def job_to_dict(profiles: Sequence[Profile]) -> dict[str, object]:
    """Return what the report knows about several processes, in JSON's types.

    Args:
        profiles: one for each process of the job, ordered by start.
    """
    found = processes_of(profiles)
    return {
        "processes": [_process_to_dict(each) for each in found],
        "loaders": [_loader_to_dict(each) for each in loader_times(found)],
        "waits": [_wait_to_dict(each) for each in process_waits(found)],
    }


def _process_to_dict(process: Process) -> Row:
    return {
        **picked(
            process.profile.run,
            *("pid", "parent_pid", "attempt", "hostname", "start_unix_ns", "wall_ns"),
            *("exit_reason", "process_name", "command"),
        ),
        **picked(process, "rank", "cpu_ns", "share", "ended"),
        **picked(process.end, "uncovered_ns", exit_status="status"),
        "role": process.role.value,
        "file": str(process.profile.source),
    }


def _loader_to_dict(loader: LoaderTime) -> Row:
    return {
        **picked(
            loader,
            *("pid", "worker_count", "at_once", "batch_count", "batch_ns", "wait_for_batch_ns"),
            *("making_ns", "wait_ns"),
        ),
        "loops": list(map(line_of, loader.loops)),
        "lines": _times_of(loader.lines),
    }


def _wait_to_dict(wait: ProcessWait) -> Row:
    return {
        **picked(wait, "wait_ns", "share", "other_ns"),
        "waiters": [each.profile.run.pid for each in wait.waiters],
        "waiter_role": wait.waiters[0].role.value,
        "others": [each.profile.run.pid for each in wait.others],
        "other_role": wait.others[0].role.value,
        "places": list(map(line_of, wait.places)),
        "lines": _times_of(wait.lines),
    }


def _times_of(lines: Sequence[tuple[Frame, int]]) -> list[Row]:
    return [{**line_of(frame), "time_ns": value} for frame, value in lines]
