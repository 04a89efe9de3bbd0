"""The part of a report about time between operators: which threads, which lines, doing what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.profiler import time_use
from deepcontext.profiler.source import line_text
from deepcontext.ui.format import Elide, format_count, format_ns, format_share, shorten_path
from deepcontext.ui.report.page import Column

if TYPE_CHECKING:
    from deepcontext.profiler.time_use import SampledTime
    from deepcontext.ui.report.page import Page
    from deepcontext.ui.report.sections import View

_LEAST_SHARE = 0.05  # of the elapsed time, to be named at a run's end
_TIME_COLUMNS = (
    Column("running"),
    Column("with GIL", rank=3),
    Column("waiting"),
    Column("for GIL", rank=2),
    Column("for CPU", rank=1),
)


def print_between(page: Page, view: View) -> None:
    """Print what threads and lines of the program did outside operators."""
    profile = view.profile
    if not time_use.is_sampled(profile):
        return
    page.title("Threads", "operators are measured, the rest is sampled; together: elapsed time")
    threads = time_use.by_thread(profile)[: view.limit]
    page.table(
        (Column("operators"), *_TIME_COLUMNS, Column("thread", Elide.MIDDLE)),
        [(_time(row.operator_ns), *_times(row.sampled), row.name) for row in threads],
    )
    rows, count = time_use.by_line(profile, view.limit)
    if not rows:
        return
    shown = "" if len(rows) == count else f" ({len(rows)} of {format_count(count)})"
    note = "running on any thread, waiting on the main thread; what no deeper line explains"
    page.title(f"Between operators{shown}", note)
    run = profile.run
    page.table(
        (*_TIME_COLUMNS, Column("line", Elide.START), Column("source", Elide.END, rank=5)),
        [
            (
                *_times(row.sampled),
                f"{shorten_path(row.file, run.cwd)}:{row.line}",
                line_text(row.file, row.line, run.start_unix_ns or None),
            )
            for row in rows
        ],
    )


def print_between_summary(page: Page, view: View) -> None:
    """Print the lines that take a good part of the elapsed time outside operators, if any do."""
    profile, run = view.profile, view.profile.run
    rows, _ = time_use.by_line(profile, view.limit) if time_use.is_sampled(profile) else ((), 0)
    least = run.wall_ns * _LEAST_SHARE
    cells = [
        (
            format_ns(row.sampled.total_ns),
            format_share(row.sampled.total_ns / run.wall_ns),
            f"{shorten_path(row.file, run.cwd)}:{row.line}",
            line_text(row.file, row.line, run.start_unix_ns or None),
        )
        for row in rows
        if row.sampled.total_ns > least
    ]
    if cells:
        page.table(
            (
                Column("between"),
                Column("of run"),
                Column("line, outside operators", Elide.START),
                Column("source", Elide.END, rank=1),
            ),
            cells,
        )


def _times(sampled: SampledTime) -> tuple[str, ...]:
    return tuple(
        _time(value)
        for value in (
            sampled.cpu_ns,
            sampled.gil_ns,
            sampled.wait_ns,
            sampled.gil_wait_ns,
            sampled.ready_ns,
        )
    )


def _time(value_ns: int) -> str:
    return format_ns(value_ns) if value_ns else "-"
