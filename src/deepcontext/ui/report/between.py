"""The part of a report about time between operators, by thread and by line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.profiler.summaries import time_between_operators
from deepcontext.ui.format import Elide
from deepcontext.ui.report.sections import part_of, source_columns
from deepcontext.ui.report.text_layout import Column

if TYPE_CHECKING:
    from deepcontext.profiler.summaries.time_between_operators import SampledTime
    from deepcontext.ui.report.sections import View
    from deepcontext.ui.report.text_layout import TextLayout

_TIME_COLUMNS = (
    Column("running"),
    Column("with GIL", rank=3),
    Column("waiting"),
    Column("for GIL", rank=2),
    Column("for CPU", rank=1),
)


def print_between(layout: TextLayout, view: View) -> None:
    """Print what threads and lines of the program did outside operators."""
    if time_between_operators.is_sampled(view.profile):
        has_operators = _print_threads(layout, view)
        _print_lines(layout, view, has_operators=has_operators)


def print_between_lines(layout: TextLayout, view: View) -> None:
    """Print what lines of the program did outside operators."""
    if time_between_operators.is_sampled(view.profile):
        threads = time_between_operators.by_thread(view.profile)
        _print_lines(layout, view, has_operators=any(row.operator_ns for row in threads))


def _print_threads(layout: TextLayout, view: View) -> bool:
    """Print what threads did; return whether any thread called operators."""
    profile = view.profile
    threads = time_between_operators.by_thread(profile)[: view.limit]
    has_operators = any(row.operator_ns for row in threads)
    note = "operators are measured, the rest is sampled" if has_operators else "sampled"
    layout.title("Threads", f"{note}; together: elapsed time")
    layout.table(
        (
            *([Column("operators")] if has_operators else []),
            *_TIME_COLUMNS,
            Column("thread", Elide.MIDDLE),
        ),
        [
            (
                *([view.time(row.operator_ns)] if has_operators else []),
                *_times(view, row.sampled),
                row.name,
            )
            for row in threads
        ],
    )
    return has_operators


def _print_lines(layout: TextLayout, view: View, *, has_operators: bool) -> None:
    rows, count = time_between_operators.by_line(view.profile, view.limit)
    if not rows:
        return
    note = "running on any thread, waiting on the main thread; without deeper lines"
    title = "Between operators" if has_operators else "Running and waiting"
    layout.title(title + part_of(len(rows), count), note)
    layout.table(
        (*_TIME_COLUMNS, *source_columns()),
        [(*_times(view, row.sampled), *view.source_cells(row)) for row in rows],
    )


def _times(view: View, sampled: SampledTime) -> tuple[str, ...]:
    return tuple(
        view.time(value)
        for value in (
            sampled.cpu_ns,
            sampled.gil_ns,
            sampled.wait_ns,
            sampled.gil_wait_ns,
            sampled.ready_ns,
        )
    )
