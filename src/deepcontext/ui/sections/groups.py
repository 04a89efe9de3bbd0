"""Tables of groups (`summaries/groups.py`): source lines, operators, modules, scopes, and GPU kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format.frame import Phase
from deepcontext.profiler.format.metric import GPU_TIME_NS
from deepcontext.profiler.summaries.gpu import gpu_use
from deepcontext.profiler.summaries.jax import programs as jax_programs
from deepcontext.profiler.summaries.lines import by_line
from deepcontext.profiler.summaries.modules import by_module
from deepcontext.profiler.summaries.operators import by_operator
from deepcontext.profiler.summaries.phases import PHASES, by_phase
from deepcontext.profiler.summaries.scopes import by_scope
from deepcontext.profiler.summaries.tables import TABLES
from deepcontext.ui.sections.table import Column, Unit, picked, plain
from deepcontext.ui.sections.view import line_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deepcontext.profiler.summaries.groups import Group, GroupTable
    from deepcontext.ui.sections.table import Row, Table
    from deepcontext.ui.sections.view import View

_PHASES: Final = Column("phases", "phases", Unit.PHASES, rank=3)
_TIMED: Final = (
    Column("exclusive", "self", Unit.METRIC),
    Column("exclusive_share", "share", Unit.SHARE),
    Column("inclusive", "total", Unit.METRIC, rank=2),
    Column(lambda row: row["call_ns"] and row["call_ns"]["count"], "calls", Unit.COUNT, rank=1),
    Column("call_ns", "a call", Unit.MEAN, rank=4),
    Column("call_ns", "range", Unit.RANGE, rank=6),
    _PHASES,
    Column("name", "name", Unit.NAME),
)
_KERNEL: Final = (
    Column("gpu_time_ns", "GPU time", Unit.NS),
    Column("share", "share", Unit.SHARE),
    Column("launches", "launches", Unit.COUNT, rank=1),
    Column(
        lambda row: row["launches"] and row["gpu_time_ns"] / row["launches"],
        "a launch",
        Unit.ONE_NS,
        rank=2,
    ),
    _PHASES,
    Column("name", "name", Unit.NAME),
)


def has_phases(view: View) -> bool:
    """Return whether any phase other than "other" has a value."""
    rows = by_phase(view.profile, view.metric)
    return any(row.value and row.phase is not Phase.OTHER for row in rows)


def lines(view: View, title: str = "Source lines of the program") -> Table:
    """Return the costliest lines of user code, including everything they call."""
    called = "its calls and its backward" if has_phases(view) else "its calls"
    found = by_line(view.profile, view.metric, view.limit)
    return view.table(
        title,
        f"total: with {called}; self: without deeper lines of your code",
        # The line's text is more useful than the column "self".
        (*_inclusive(self_rank=6), *view.line_columns()),
        _line_rows(view, found),
        row_count=found.row_count,
    )


def modules(view: View) -> Table:
    """Return the costliest modules, including nested modules."""
    found = by_module(view.profile, view.metric, view.limit)
    columns = (*_inclusive(self_rank=1), Column("name", "module", Unit.NAME))
    note = "total: forward and backward; self: no nested module"
    return view.table("Modules", note, columns, rows_of(found), row_count=found.row_count)


def operators(view: View) -> Table:
    """Return the operators with the largest exclusive values."""
    found = by_operator(view.profile, view.metric, view.limit)
    note = "self: without nested operators; a call: elapsed time of one call with nested operators"
    return view.table("Operators", note, _TIMED, rows_of(found), row_count=found.row_count)


def scopes(view: View) -> Table:
    """Return the scopes that the program and its framework opened."""
    found = by_scope(view.profile, view.metric, view.limit)
    note = "self: without nested scopes"
    return view.table("Scopes", note, _TIMED, rows_of(found), row_count=found.row_count)


def kernels(view: View) -> Table | None:
    """Return what used the GPU's time; None without GPU time."""
    use = gpu_use(view.profile, view.limit)
    if use is None:
        return None
    rows = [
        {
            **picked(kernel, "name", "gpu_time_ns", "launches"),
            "share": kernel.gpu_time_ns / use.time_ns,
            "phases": _by_phase(kernel.phases),
        }
        for kernel in use.kernels
    ]
    title = "Kernels, copies and memsets"
    return view.table(title, "time on the GPU", _KERNEL, rows, row_count=use.kernel_count)


def of_gpu(view: View) -> Iterator[Table]:
    """Return what used the GPU's time, and the lines that launched it, unless tables of JAX show it."""
    table = kernels(view)
    if table is None or jax_programs.section(view.profile) is not None:
        return
    yield table
    if view.metric != GPU_TIME_NS.name:  # otherwise the report shows these lines already
        yield lines(replace(view, metric=GPU_TIME_NS.name), "Source lines by GPU time")


def table_to_dict(view: View, name: str) -> dict[str, object]:
    """Return the rows of one of `TABLES`, and their number."""
    found = TABLES[name].make(view.profile, view.metric, view.limit)
    rows = _line_rows(view, found) if TABLES[name].make is by_line else rows_of(found)
    return {"row_count": found.row_count, "rows": rows}


def _line_rows(view: View, found: GroupTable) -> list[Row]:
    return [
        {**line_of(row), "source": view.text(row.file, row.line), **_values(row, found.total)}
        for row in found.rows
    ]


def rows_of(found: GroupTable) -> list[Row]:
    """Return groups of one name."""
    return [
        {"name": row.name, **_values(row, found.total), "call_ns": plain(row.calls)}
        for row in found.rows
    ]


def _inclusive(*, self_rank: int) -> tuple[Column, ...]:
    return (
        Column("inclusive", "total", Unit.METRIC),
        Column("exclusive", "self", Unit.METRIC, self_rank),
        Column("inclusive_share", "share", Unit.SHARE),
        _PHASES,
    )


def _values(row: Group, total: int) -> dict[str, object]:
    return {
        **picked(row, "inclusive", "exclusive", "contexts"),
        "inclusive_share": row.inclusive / total if total else 0.0,
        "exclusive_share": row.exclusive / total if total else 0.0,
        "phases": _by_phase(row.phases),
    }


def _by_phase(values: Sequence[int]) -> dict[str, int]:
    return {phase.label: value for phase, value in zip(PHASES, values, strict=True)}
