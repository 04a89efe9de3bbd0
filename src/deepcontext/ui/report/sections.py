"""The tables of a report: one function for each section; `profiler.summaries` computes the values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

from rich.text import Text

from deepcontext.profiler.format.frame import Phase
from deepcontext.profiler.model.source import line_text
from deepcontext.profiler.summaries.basis import Part, basis_of
from deepcontext.profiler.summaries.lines import by_line
from deepcontext.profiler.summaries.modules import by_module
from deepcontext.profiler.summaries.operators import by_operator
from deepcontext.profiler.summaries.phases import PHASES, by_phase
from deepcontext.profiler.summaries.scopes import by_scope
from deepcontext.ui.format import (
    Elide,
    format_count,
    format_mean_sd,
    format_ns,
    format_share,
    format_value,
    shorten_path,
)
from deepcontext.ui.report.text_layout import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.grouping import Spread
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.basis import Basis
    from deepcontext.profiler.summaries.groups import Group, GroupTable
    from deepcontext.profiler.summaries.phases import PhaseRow
    from deepcontext.ui.report.text_layout import TextLayout

PHASE_NAMES: Final = {phase: phase.label.replace("_", " ") for phase in PHASES}
_PHASE_STYLES: Final = {
    Phase.FORWARD: "green",
    Phase.BACKWARD: "magenta",
    Phase.RECOMPUTE: "red",
    Phase.OPTIMIZER: "yellow",
    Phase.DATA_LOADING: "cyan",
    Phase.OTHER: "dim",
}
_BAR_WIDTH: Final = 60
_MIX_WIDTH: Final = 8
_VALUE_COLUMNS: Final = (
    Column("total"),
    Column("self", rank=1),
    Column("share"),
    Column("phases", rank=3),
)


@dataclass(frozen=True, slots=True)
class View:
    """What a report shows: a profile by one metric, with at most `limit` rows in a table.

    `processes` are the profiles of all processes of the run, if it had several.
    """

    profile: Profile
    metric: str
    limit: int
    processes: Sequence[Profile] = ()

    @property
    def unit(self) -> str:
        """Unit of the metric."""
        return self.profile.metrics[self.metric].descriptor.unit

    @property
    def basis(self) -> Basis:
        """What the profile is of."""
        return basis_of(self.profile)

    @property
    def run(self) -> View:
        """The whole run, whatever the profile is of."""
        return replace(self, profile=self.basis.whole)

    @property
    def each(self) -> str:
        """``" a step"`` after a value of `value`, "" where values are sums of a run."""
        return " a step" if self.basis.steps else ""

    @property
    def of_run(self) -> str:
        """What the title of a table of the whole run adds, "" where all tables are."""
        return "" if self.basis.part is Part.RUN else ", of the whole run"

    @property
    def each_column(self) -> str:
        """Heading of a column with values of `time`."""
        return self.each.strip() or "time"

    def time(self, value_ns: float | None) -> str:
        """Return a sum of times in ns as text, divided by the steps; "-" for 0 and None."""
        return format_ns((value_ns or 0) / (self.basis.steps or 1) or None)

    def value(self, value: float, unit: str | None = None) -> str:
        """Return a sum of the metric, or of one with this unit, as text, divided by the steps."""
        return format_value(value / (self.basis.steps or 1), unit or self.unit)

    def count(self, count: float | None) -> str:
        """Return a number of events as text, divided by the steps."""
        return format_count(count and count / (self.basis.steps or 1))

    def source_cells(self, row: SourceRow) -> tuple[str, str]:
        """Return the path and number of a source line, and its text; see `source_columns`."""
        run = self.profile.run
        text = line_text(row.file, row.line, run.start_unix_ns or None)
        return f"{shorten_path(row.file, run.cwd)}:{row.line}", text


class SourceRow(Protocol):
    """A row of a table about a source line."""

    @property
    def file(self) -> str:
        """Path of the file."""
        ...

    @property
    def line(self) -> int:
        """Number of the line, from 1."""
        ...


def source_columns(title: str = "line", *, rank: int = 5) -> tuple[Column, Column]:
    """Return the last two columns of a table about source lines; `rank` is that of the text."""
    return Column(title, Elide.START), Column("source", Elide.END, rank)


def part_of(shown: int, count: int) -> str:
    """Return ``" (8 of 1,250)"`` for a title, or "" if all rows are shown."""
    return "" if shown == count else f" ({format_count(shown)} of {format_count(count)})"


def print_phases(
    layout: TextLayout, view: View, title: str = "Phases", *, with_calls: bool = True
) -> None:
    """Print the metric's split into forward, backward, optimizer, ..., if phases are known."""
    parts = _phase_parts(view)
    if not _is_divided(parts):
        return
    layout.title(title)
    layout.line(_phase_bar(layout, parts))
    columns = (
        Column("phase", Elide.END),
        Column("self"),
        Column("share"),
        *([Column("calls")] if with_calls else []),
    )
    cells: list[list[str | Text]] = [
        [
            Text(f"{glyph} {PHASE_NAMES[row.phase]}", _PHASE_STYLES[row.phase]),
            view.value(row.value),
            format_share(share),
            *([view.count(row.operator_calls)] if with_calls else []),
        ]
        for (row, share), glyph in zip(parts, layout.glyphs.bars, strict=True)
        if row.value
    ]
    layout.table(columns, cells)


def print_phase_bar(layout: TextLayout, view: View, title: str = "") -> None:
    """Print the split by phase as one bar with a legend, if phases are known."""
    parts = _phase_parts(view)
    if not _is_divided(parts):
        return
    if title:
        layout.title(title)
    layout.line(_phase_bar(layout, parts))
    legend = [
        Text(f"{glyph} {PHASE_NAMES[row.phase]} {format_share(share)}", _PHASE_STYLES[row.phase])
        for (row, share), glyph in zip(parts, layout.glyphs.bars, strict=True)
        if row.value
    ]
    layout.flow(legend)


def print_lines(layout: TextLayout, view: View, title: str = "Source lines of the program") -> None:
    """Print the costliest lines of user code, including everything they call."""
    table = by_line(view.profile, view.metric, view.limit)
    if not table.rows:
        return
    called = "its calls and its backward" if _is_divided(_phase_parts(view)) else "its calls"
    note = f"total: with {called}; self: without deeper lines of your code"
    layout.title(f"{title}{_shown(table)}", note)
    print_line_table(layout, view, table)


def print_line_table(layout: TextLayout, view: View, table: GroupTable) -> None:
    """Print rows of `by_line` with the text of each line."""
    total, exclusive, share, phases = _VALUE_COLUMNS
    shown = 4 if _is_divided(_phase_parts(view)) else 3  # a bar of one phase carries no information
    columns = (
        total,
        replace(exclusive, rank=6),  # the line's text is more useful than this column
        *(share, phases)[: shown - 2],
        *source_columns(),
    )
    cells = [
        (*_values(layout, view, row, table.total)[:shown], *view.source_cells(row))
        for row in table.rows
    ]
    layout.table(columns, cells)


def print_operators(layout: TextLayout, view: View) -> None:
    """Print the operators with the largest exclusive values."""
    table = by_operator(view.profile, view.metric, view.limit)
    note = "self: without nested operators; a call: elapsed time of one call with nested operators"
    _print_timed(layout, view, "Operators", table, note)


def print_scopes(layout: TextLayout, view: View) -> None:
    """Print the scopes that the program and its framework opened."""
    table = by_scope(view.profile, view.metric, view.limit)
    _print_timed(layout, view, "Scopes", table, "self: without nested scopes")


def print_modules(layout: TextLayout, view: View) -> None:
    """Print the costliest modules, including nested modules."""
    table = by_module(view.profile, view.metric, view.limit)
    if not table.rows:
        return
    layout.title(
        f"Modules{_shown(table)}",
        "total: forward and backward; self: no nested module",
    )
    columns = (*_VALUE_COLUMNS, Column("module", Elide.MIDDLE))
    cells = [(*_values(layout, view, row, table.total), row.name) for row in table.rows]
    layout.table(columns, cells)


def _values(layout: TextLayout, view: View, row: Group, total: int) -> tuple[str | Text, ...]:
    return (
        view.value(row.inclusive),
        view.value(row.exclusive),
        format_share(row.inclusive / total if total else None),
        phase_mix(layout, row.phases),
    )


def _phase_parts(view: View) -> list[tuple[PhaseRow, float]]:
    rows = by_phase(view.profile, view.metric)
    total = sum(row.value for row in rows)
    return [(row, row.value / total if total else 0.0) for row in rows]


def _is_divided(parts: list[tuple[PhaseRow, float]]) -> bool:
    """Return whether any phase other than "other" has a value."""
    return any(row.value and row.phase is not Phase.OTHER for row, _ in parts)


def _phase_bar(layout: TextLayout, parts: list[tuple[PhaseRow, float]]) -> Text:
    width = min(_BAR_WIDTH, layout.width - 4)
    bar = layout.divided_bar([(share, _PHASE_STYLES[row.phase]) for row, share in parts], width)
    return Text("  ").append_text(bar)


def phase_mix(layout: TextLayout, values: Sequence[int]) -> Text:
    """Return values by phase, in the order of `PHASE_NAMES`, as a small bar like the large one."""
    total = sum(values)
    parts = [
        (value / total if total else 0.0, _PHASE_STYLES[phase])
        for phase, value in zip(PHASES, values, strict=True)
    ]
    return layout.divided_bar(parts, _MIX_WIDTH)


def _print_timed(layout: TextLayout, view: View, title: str, table: GroupTable, note: str) -> None:
    """Print groups whose calls are timed individually."""
    if not table.rows:
        return
    layout.title(f"{title}{_shown(table)}", note)
    columns = (
        Column("self"),
        Column("share"),
        Column("total", rank=2),
        Column("calls", rank=1),
        Column("a call", rank=4),
        Column("range", rank=6),
        Column("phases", rank=3),
        Column("name", Elide.MIDDLE),
    )
    layout.table(columns, [_timed_row(layout, view, row, table.total) for row in table.rows])


def _timed_row(layout: TextLayout, view: View, row: Group, total: int) -> tuple[str | Text, ...]:
    calls = row.calls
    return (
        view.value(row.exclusive),
        format_share(row.exclusive / total if total else None),
        view.value(row.inclusive),
        view.count(calls.count if calls else None),
        format_mean_sd(calls.mean, calls.sd, layout.glyphs) if calls else "-",
        _range(calls),
        phase_mix(layout, row.phases),
        row.name,
    )


def _range(calls: Spread | None) -> str:
    if calls is None or calls.minimum is None or calls.maximum is None:
        return "-"
    return f"{format_ns(calls.minimum)} to {format_ns(calls.maximum)}"


def _shown(table: GroupTable) -> str:
    return part_of(len(table.rows), table.row_count)
