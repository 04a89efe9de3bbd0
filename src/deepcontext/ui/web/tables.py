"""Tables of `deepcontext.ui.sections` for the page, with the texts of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deepcontext.ui.format import shorten_path
from deepcontext.ui.sections.table import Unit
from deepcontext.ui.web.answers import LinePlace, TableAnswer, TableColumn

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.ui.sections.table import Column, Row, Table


def table_answer(table: Table, reason: str = "") -> TableAnswer:
    """Return a table; `reason` says why it has no rows.

    Lines are links to their source, so that functions stand in place of the text of lines, which a page may
    be made without.
    """
    columns = table.shown if table.rows else ()
    return TableAnswer(
        table.title,
        table.note if table.rows else table.above or reason,
        [
            TableColumn(
                "function" if each.unit is Unit.SOURCE else each.heading, not each.unit.elide
            )
            for each in columns
        ],
        [[_cell(table, each, row) for each in columns] for row in table.rows],
    )


def line_place(profile: Profile, file: str, line: int) -> LinePlace:
    """Return a line of source for an answer; "" stands for no file."""
    return LinePlace(file, shorten_path(file, profile.run.cwd), line)


def _cell(table: Table, column: Column, row: Row) -> Any:
    if column.unit is Unit.SOURCE:
        return row["function"]
    value = column.of(row)
    if column.unit is Unit.HISTORY:
        return value
    text = table.text_of(value, column.unit)
    is_line = column.unit is Unit.PATH and row["line"]
    return LinePlace(row["file"], text.rpartition(":")[0], row["line"]) if is_line else text
