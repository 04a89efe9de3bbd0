"""What processors did: time between operators, counters, lines of packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.summaries import counters as counter_summary
from deepcontext.profiler.summaries import time_between_operators
from deepcontext.profiler.summaries.library_time import library_time
from deepcontext.ui.format import format_share
from deepcontext.ui.sections.table import Column, Unit, picked, plain, share
from deepcontext.ui.sections.view import line_of

if TYPE_CHECKING:
    from deepcontext.profiler.format.metric import MetricDescriptor
    from deepcontext.profiler.summaries.library_time import LibraryTime, PackageLine
    from deepcontext.ui.sections.table import Row, Table
    from deepcontext.ui.sections.view import View

_MOST_PACKAGES: Final = 4
_LEAST_SHARE: Final = 0.01
_TIMES: Final = (
    Column("cpu_ns", "running", Unit.NS),
    Column("gil_ns", "with GIL", Unit.NS, rank=3),
    Column("wait_ns", "waiting", Unit.NS),
    Column("gil_wait_ns", "for GIL", Unit.NS, rank=2),
    Column("ready_ns", "for CPU", Unit.NS, rank=1),
)
_OPERATORS: Final = Column("operator_ns", "operators", Unit.NS)


def threads(view: View) -> Table | None:
    """Return what threads did; None if nothing was sampled."""
    if not time_between_operators.is_sampled(view.profile):
        return None
    rows = _threads(view)
    note = "operators are measured, the rest is sampled" if _has_operators(rows) else "sampled"
    return view.table(
        "Threads",
        f"{note}; together: elapsed time",
        (_OPERATORS, *_TIMES, Column("name", "thread", Unit.NAME)),
        rows[: view.limit],
        row_count=len(rows),
    )


def between(view: View) -> Table | None:
    """Return what lines of the program did outside operators; None if nothing was sampled."""
    if not time_between_operators.is_sampled(view.profile):
        return None
    rows, count = time_between_operators.by_line(view.profile, view.limit)
    return view.table(
        "Between operators" if _has_operators(_threads(view)) else "Running and waiting",
        "running on any thread, waiting on the main thread; without deeper lines",
        (*_TIMES, *view.line_columns()),
        [{**view.line(row), **plain(row.sampled)} for row in rows],
        row_count=count,
    )


def time_use(view: View) -> dict[str, object] | None:
    """Return both, with all threads."""
    lines = between(view)
    return None if lines is None else {"threads": _threads(view), "lines": lines.to_json()}


def _threads(view: View) -> list[Row]:
    return [
        {"name": row.name, "operator_ns": row.operator_ns, **plain(row.sampled)}
        for row in time_between_operators.by_thread(view.profile)
    ]


def _has_operators(threads: list[Row]) -> bool:
    return any(row["operator_ns"] for row in threads)


def counters(view: View) -> Table | None:
    """Return the lines at which counters of the processor and the kernel rose, None without any."""
    metrics = counter_summary.counted(view.profile)
    if not metrics:
        return None
    rows, count = counter_summary.by_line(view.profile, view.limit)
    return view.table(
        "Counters",
        "read at samples, including operators; without deeper lines of your code",
        (
            *map(_counter, metrics),
            Column("instructions_per_cycle", "per cycle", Unit.ONE_COUNT),
            *view.line_columns(),
        ),
        [{**view.line(row), **picked(row, "counts", "instructions_per_cycle")} for row in rows],
        row_count=count,
    )


def _counter(metric: MetricDescriptor) -> Column:
    name = counter_summary.counter_name(metric)
    return Column(lambda row: row["counts"][metric.name], name, Unit.COUNT)


def counter_use(view: View) -> dict[str, object] | None:
    """Return the same, with the totals."""
    table, profile = counters(view), view.profile
    if table is None:
        return None
    metrics = counter_summary.counted(profile)
    totals = {metric.name: int(profile.inclusive(metric.name)[0]) for metric in metrics}
    return {"totals": totals, "lines": table.to_json()}


def packages(view: View) -> Table | None:
    """Return the lines of packages below the one line of user code, if there is such a line."""
    found = library_time(view.profile, view.limit)
    if found is None:
        return None
    _, text = view.line_columns(rank=1)
    return view.table(
        "Lines of packages",
        "elapsed time without deeper lines of packages",
        (
            Column("time_ns", "elapsed", Unit.NS),
            share("time_ns", found.time_ns),
            Column("path", "line of a package", Unit.PATH),
            text,
        ),
        [
            {**_package_line(row), "path": f"{row.path}:{row.frame.line}"}
            for row in found.lines
            if row.time_ns >= _LEAST_SHARE * found.time_ns
        ],
        row_count=found.line_count,
        above=_packages(view, found),
    )


def below(view: View) -> dict[str, object] | None:
    """Return the same, with all packages."""
    found = library_time(view.profile, view.limit)
    if found is None:
        return None
    line = found.line
    return {
        "file": line.file if line else "",
        "line": line.line if line else 0,
        "time_ns": found.time_ns,
        "packages": [{"name": name, "time_ns": time_ns} for name, time_ns in found.packages],
        "line_count": found.line_count,
        "lines": [_package_line(row) for row in found.lines],
    }


def _packages(view: View, found: LibraryTime) -> str:
    """Return ``"below train.py:12, 7.10 s: transformers 83.1 %, accelerate 12.0 %"``."""
    where = f"below {view.place(line_of(found.line))}" if found.line else "outside your code"
    shares = [(name, time_ns / found.time_ns) for name, time_ns in found.packages]
    named = [
        f"{name} {format_share(part)}"
        for name, part in shares[:_MOST_PACKAGES]
        if part >= _LEAST_SHARE
    ]
    return f"{where}, {view.time(found.time_ns)}{view.each}: {', '.join(named)}"


def _package_line(row: PackageLine) -> dict[str, object]:
    return {**line_of(row.frame), "time_ns": row.time_ns}
