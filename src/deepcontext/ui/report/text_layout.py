"""Lay text out on a terminal of any width: titles, tables, divided bars.

Does not know what a profile is. Invariants: no line is wider than the console; text left out for
lack of width is marked or named; a terminal that is not UTF-8 receives only ASCII.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.text import Text

from deepcontext.ui.format import ASCII, UNICODE, Elide, Glyphs, elide, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from deepcontext.ui.sections.table import Column

_GAP: Final = 2
_MARGIN: Final = 2
_LEAST_FLEXIBLE: Final = 24


@dataclass(slots=True)
class TextLayout:
    """A console, and the columns left out for lack of width."""

    console: Console
    glyphs: Glyphs = field(init=False)
    hidden_columns: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.glyphs = ASCII if self.console.options.ascii_only else UNICODE

    @property
    def width(self) -> int:
        """Columns of the terminal."""
        return self.console.width

    def clean(self, text: str) -> str:
        """Return `text` with only characters that this terminal can show."""
        return printable(text, "ascii" if self.glyphs is ASCII else "utf-8")

    def line(self, text: str | Text = "", style: str = "") -> None:
        """Print one line; a string that is too long is shortened at its end."""
        if isinstance(text, str):
            text = Text(elide(self.clean(text), self.width, self.glyphs, Elide.END), style)
        self.console.print(text, no_wrap=True, overflow="crop", highlight=False)

    def prose(self, text: str, style: str = "", indent: str = "  ", hanging: str = "") -> None:
        """Print a sentence over as many lines as needed; the first line begins with `hanging`."""
        room = max(self.width - cell_len(indent) - cell_len(hanging), 20)
        lead = indent + hanging
        for row in Text(self.clean(text)).wrap(self.console, room):
            row.rstrip()
            self.line(Text.assemble((lead, style), (row.plain, style)))
            lead = " " * cell_len(lead)

    def title(self, text: str, note: str = "") -> None:
        """Print a blank line and the heading of a section, with an explanation of its terms."""
        self.line()
        heading = Text(self.clean(text), "bold")
        if note and cell_len(text) + cell_len(note) + _GAP <= self.width:
            heading.append(f"{' ' * _GAP}{self.clean(note)}", "dim")
            note = ""
        self.line(heading)
        if note:
            self.prose(note, "dim")

    def flow(self, items: Sequence[Text]) -> None:
        """Print items side by side, on as many lines as needed."""
        line = Text(" " * (_MARGIN - _GAP))
        parts = [part for item in items for part in item.wrap(self.console, self.width - _MARGIN)]
        for item in parts:
            item.rstrip()
            if line.cell_len > _MARGIN and line.cell_len + _GAP + item.cell_len > self.width:
                self.line(line)
                line = Text(" " * (_MARGIN - _GAP))
            line.append(" " * _GAP).append_text(item)
        self.line(line)

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str | Text]]) -> None:
        """Print a table of any width: columns of texts use the width that the others leave.

        Texts are aligned to the left and shortened, numbers are aligned to the right and whole.
        """
        cells = [[self._cell(cell) for cell in row] for row in rows]
        shown, widths = self._fit(columns, cells)
        heading = [Text(column.heading, "dim") for column in columns]
        for row in (heading, *cells):
            line = Text(" " * (_MARGIN - _GAP))
            for index in shown:
                line.append(" " * _GAP)
                line.append_text(self._fitted(row[index], widths[index], columns[index]))
            line.rstrip()
            self.line(line)

    def divided_bar(self, parts: Sequence[tuple[float, str]], width: int) -> Text:
        """Return a bar of `width` columns.

        Args:
            parts: share of the whole, 0 to 1, and rich style of each part; part i is filled with
                the i-th of `Glyphs.bars`.
            width: columns of the whole bar.
        """
        bar = Text()
        filled, reached = 0, 0.0
        for (share, style), glyph in zip(parts, self.glyphs.bars, strict=False):
            reached += share
            until = min(round(reached * width), width)
            bar.append(glyph * (until - filled), style)
            filled = max(filled, until)
        return bar

    def columns(self, values: Sequence[float], most: float) -> Text:
        """Return one character for each value, of a height from 0 to that of `most`."""
        levels = self.glyphs.levels
        steps = len(levels) - 1
        return Text(
            "".join(levels[min(round(steps * value / (most or 1)), steps)] for value in values)
        )

    def _cell(self, cell: str | Text) -> Text:
        return Text(self.clean(cell)) if isinstance(cell, str) else cell

    def _fitted(self, cell: Text, width: int, column: Column) -> Text:
        if cell.cell_len > width and column.unit.elide:
            return Text(elide(cell.plain, width, self.glyphs, column.unit.elide), cell.style)
        blank = " " * (width - cell.cell_len)
        parts = (cell, blank) if column.unit.elide else (blank, cell)
        return Text.assemble(*parts)

    def _fit(
        self, columns: Sequence[Column], cells: Sequence[Sequence[Text]]
    ) -> tuple[list[int], list[int]]:
        """Choose the columns that fit, and their widths."""
        need = [
            max([cell_len(column.heading), *(row[index].cell_len for row in cells)])
            for index, column in enumerate(columns)
        ]
        shown = list(range(len(columns)))
        while self._room(columns, need, shown) < self._least(columns, need, shown):
            last = max(shown, key=lambda index: columns[index].rank)
            if columns[last].rank == 0:
                break
            shown.remove(last)
            if columns[last].heading not in self.hidden_columns:
                self.hidden_columns.append(columns[last].heading)
        return shown, self._share_out(columns, need, shown)

    def _room(self, columns: Sequence[Column], need: list[int], shown: list[int]) -> int:
        """Return the width left for the flexible columns."""
        fixed = sum(need[index] for index in shown if not columns[index].unit.elide)
        return self.width - _MARGIN - fixed - _GAP * (len(shown) - 1)

    def _least(self, columns: Sequence[Column], need: list[int], shown: list[int]) -> int:
        return sum(
            min(need[index], _LEAST_FLEXIBLE) for index in shown if columns[index].unit.elide
        )

    def _share_out(self, columns: Sequence[Column], need: list[int], shown: list[int]) -> list[int]:
        """Give each flexible column the width it needs, or an equal part of the rest."""
        widths = list(need)
        room = self._room(columns, need, shown)
        flexible = sorted(
            (index for index in shown if columns[index].unit.elide), key=lambda index: need[index]
        )
        for served, index in enumerate(flexible):
            widths[index] = max(1, min(need[index], room // (len(flexible) - served)))
            room -= widths[index]
        return widths
