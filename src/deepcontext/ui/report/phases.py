"""The split of a metric into phases: bars, and a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from deepcontext.profiler.format.frame import Phase
from deepcontext.profiler.summaries.phases import PHASES, by_phase
from deepcontext.ui.format import format_share
from deepcontext.ui.sections.groups import has_phases
from deepcontext.ui.sections.table import Column, Unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.summaries.phases import PhaseRow
    from deepcontext.ui.report.text_layout import TextLayout
    from deepcontext.ui.sections.view import View

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


def print_phases(
    layout: TextLayout, view: View, title: str = "Phases", *, with_calls: bool = True
) -> None:
    """Print the metric's split into forward, backward, optimizer, ..., if phases are known."""
    parts = _phase_parts(view)
    if not has_phases(view):
        return
    layout.title(title)
    layout.line(_phase_bar(layout, parts))
    headings = {"phase": Unit.TEXT, "self": Unit.METRIC, "share": Unit.SHARE, "calls": Unit.COUNT}
    columns = [Column(name, name, unit) for name, unit in headings.items()]
    cells: list[list[str | Text]] = [
        [
            Text(f"{glyph} {PHASE_NAMES[row.phase]}", _PHASE_STYLES[row.phase]),
            view.text_of(row.value, Unit.METRIC),
            format_share(share),
            *([view.text_of(row.operator_calls, Unit.COUNT)] if with_calls else []),
        ]
        for (row, share), glyph in zip(parts, layout.glyphs.bars, strict=True)
        if row.value
    ]
    layout.table(columns if with_calls else columns[:-1], cells)


def print_phase_bar(layout: TextLayout, view: View, title: str = "") -> None:
    """Print the split by phase as one bar with a legend, if phases are known."""
    parts = _phase_parts(view)
    if not has_phases(view):
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


def _phase_parts(view: View) -> list[tuple[PhaseRow, float]]:
    rows = by_phase(view.profile, view.metric)
    total = sum(row.value for row in rows)
    return [(row, row.value / total if total else 0.0) for row in rows]


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
