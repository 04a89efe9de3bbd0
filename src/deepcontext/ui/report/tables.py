"""Lay out a table of `deepcontext.ui.sections` on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from deepcontext.profiler.summaries.phases import PHASES
from deepcontext.ui.format import part_of
from deepcontext.ui.report.phases import phase_mix
from deepcontext.ui.sections.table import Unit

if TYPE_CHECKING:
    from deepcontext.ui.report.text_layout import TextLayout
    from deepcontext.ui.sections.table import Table


def print_table(layout: TextLayout, table: Table | None) -> None:
    """Print a table without the columns that are empty in all rows; nothing for one without content."""
    if table is None or not (table.rows or table.above):
        return
    if table.title:
        shown = part_of(len(table.rows), table.count) if table.rows else ""
        layout.title(f"{table.title}{shown}{table.of}", table.note)
    if table.above:
        layout.prose(table.above)
    print_rows(layout, table)
    if table.below:
        layout.prose(table.below, "dim")


def print_rows(layout: TextLayout, table: Table) -> None:
    """Print the columns and rows alone."""
    if columns := table.shown:
        layout.table(
            columns,
            [
                [_cell(layout, table, column.of(row), column.unit) for column in columns]
                for row in table.rows
            ],
        )


def _cell(layout: TextLayout, table: Table, value: Any, unit: Unit) -> str | Text:
    if unit is Unit.PHASES:
        return phase_mix(layout, [value.get(phase.label, 0) for phase in PHASES])
    if unit is Unit.HISTORY:
        return layout.columns(value, 1)
    text = table.text_of(value, unit, layout.glyphs)
    return Text(text, "red" if value > 0 else "green") if unit is Unit.CHANGE else text
