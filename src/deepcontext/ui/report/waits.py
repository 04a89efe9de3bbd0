"""The report's section about processes that wait for other processes, and what the others did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.model.source import line_text
from deepcontext.profiler.summaries.roles import Role
from deepcontext.ui.format import Elide, format_ns, format_share, shorten_path
from deepcontext.ui.report.text_layout import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.summaries.process_waits import ProcessWait
    from deepcontext.profiler.summaries.processes import Process
    from deepcontext.ui.report.text_layout import TextLayout

_MOST: Final = 4
_LEAST_SHARE: Final = 0.05
_LEAST_LINE: Final = 0.02


def print_waits(layout: TextLayout, waits: Sequence[ProcessWait], cwd: str) -> None:
    """Print who waits for whom, and the lines in which the others spend their time.

    Leaves out what the section about DataLoader workers says, and short waiting.

    Args:
        layout: where to print.
        waits: who waits for whom, the longest first.
        cwd: folder to which paths are relative.
    """
    told = [each for each in waits if each.share >= _LEAST_SHARE and not _is_of_loader(each)]
    if not told:
        return
    layout.title(
        "Waiting for other processes",
        "main threads in queues, pipes and results; lines of the others in their whole run",
    )
    layout.table(
        (
            Column("waits"),
            Column("share"),
            Column("process", Elide.END),
            Column("for", Elide.END),
            Column("spent"),
            Column("in line", Elide.START),
            Column("source", Elide.END, rank=1),
        ),
        [row for wait in told[:_MOST] for row in _rows(wait, cwd)],
    )
    if len(told) > _MOST:
        layout.prose(f"{len(told) - _MOST} more groups of processes wait less")


def _is_of_loader(wait: ProcessWait) -> bool:
    return Role.LOADER in {wait.waiters[0].role, wait.others[0].role}


def _rows(wait: ProcessWait, cwd: str) -> list[tuple[str, ...]]:
    head = (
        format_ns(wait.wait_ns),
        format_share(wait.share),
        _named(wait.waiters),
        _named(wait.others),
    )
    lines = [
        (
            format_ns(value),
            f"{shorten_path(frame.file, cwd)}:{frame.line}",
            line_text(frame.file, frame.line) or frame.name,
        )
        for frame, value in wait.lines
        if value >= _LEAST_LINE * wait.other_ns
    ] or [("", "no line of your code", "")]
    blank = ("",) * len(head)
    return [(*(blank if n else head), *line) for n, line in enumerate(lines)]


def _named(processes: Sequence[Process]) -> str:
    """Return ``program 123``, ``4 pool workers``."""
    first = processes[0]
    if len(processes) == 1:
        return f"{first.role.value} {first.profile.run.pid}"
    roles = {each.role for each in processes}
    return f"{len(processes)} {first.role.plural if len(roles) == 1 else 'processes'}"
