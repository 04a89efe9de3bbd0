"""The report on one or two screens, and the report with every section.

Invariants of the first: at most `MOST_LINES` lines, unless the warnings and findings alone are longer; the
last line names the sections that are left out.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format.metric import HOST_TIME_NS
from deepcontext.profiler.model.elapsed import ELAPSED_TIME_NS
from deepcontext.ui.report import account, findings, header
from deepcontext.ui.report.sections import SECTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from deepcontext.ui.report.sections import Section
    from deepcontext.ui.report.text_layout import TextLayout
    from deepcontext.ui.sections.view import View

MOST_LINES: Final = 80
# A blank line, names of the sections and columns left out, and the suggested commands.
_CLOSING_LINES: Final = 6
# Numbers of rows per table, tried in this order until all sections fit.
_ROWS: Final = (8, 7, 6, 5)
# Numbers of rows that are then tried for a section that does not fit.
_FEWER_ROWS: Final = (4, 3)
_FEWEST_ROWS: Final = 3
_OF_HOST: Final = (HOST_TIME_NS.name, ELAPSED_TIME_NS.name)


def print_overview(
    layout: TextLayout, view: View, warnings: Sequence[str], most_lines: int
) -> None:
    """Print the most important sections of a profile in `most_lines`; tables have the rows that fit."""
    top = _top(layout, view, warnings)
    trust = _printed(layout, lambda: header.print_trust_summary(layout, view.profile.trust))
    room = most_lines - len(top) - len(trust) - _CLOSING_LINES
    parts: dict[str, list[str]] = {}
    of_host = view.metric in _OF_HOST
    sections = [each for each in SECTIONS if not (of_host and each.is_of_account)]
    for rows in _ROWS:
        layout.hidden_columns.clear()
        parts = {each.name: _section(layout, view, each, rows) for each in sections}
        if sum(map(len, parts.values())) <= room:
            break
    kept = _fitting(layout, view, sections, parts, room)
    left_out = [name for name, part in parts.items() if part and not kept[name]]
    whole = _printed(layout, lambda: header.print_trust(layout, view.profile.trust))
    if sum(map(len, kept.values())) + len(whole) <= room + len(trust):
        trust = whole
    for part in (top, *kept.values(), trust):
        layout.console.file.write("".join(part))
    layout.line()
    if left_out:
        layout.prose(f"left out: {', '.join(left_out)}", "dim", indent="")


def print_full(layout: TextLayout, view: View, warnings: Sequence[str]) -> None:
    """Print all sections of a profile, with `view.limit` rows in each table."""
    header.print_header(layout, view)
    _print_above(layout, view, warnings)
    for section in SECTIONS:
        (section.print_full or section.print_it)(layout, view)
    header.print_trust(layout, view.profile.trust)
    layout.line()


def _top(layout: TextLayout, view: View, warnings: Sequence[str]) -> list[str]:
    """Return the first part, with fewer rows where there are many warnings."""
    part: list[str] = []
    for rows in (*_ROWS, _FEWEST_ROWS):
        part = _printed(layout, partial(_print_top, layout, view, warnings, rows))
        if len(part) <= MOST_LINES // 2:
            break
    return part


def _print_top(layout: TextLayout, view: View, warnings: Sequence[str], rows: int) -> None:
    header.print_short_header(layout, view)
    _print_above(layout, replace(view, limit=rows), warnings)


def _print_above(layout: TextLayout, view: View, warnings: Sequence[str]) -> None:
    account.print_verdicts(layout, view)
    header.print_all_warnings(layout, warnings)
    account.print_account(layout, view)
    findings.print_summary(layout, view)


def _section(layout: TextLayout, view: View, section: Section, rows: int) -> list[str]:
    rows = max(rows + section.more_rows, _FEWEST_ROWS)
    return _printed(layout, lambda: section.print_it(layout, replace(view, limit=rows)))


def _printed(layout: TextLayout, print_part: Callable[[], None]) -> list[str]:
    """Return the lines that a part prints, with their line ends."""
    with layout.console.capture() as captured:
        print_part()
    return captured.get().splitlines(keepends=True)


def _fitting(
    layout: TextLayout,
    view: View,
    sections: Sequence[Section],
    parts: Mapping[str, list[str]],
    room: int,
) -> dict[str, list[str]]:
    """Return the sections in as many rows as fit, the most important first; [] for what does not fit."""
    kept: dict[str, list[str]] = {}
    for section in sorted(sections, key=lambda each: each.rank):
        part = parts[section.name]
        for rows in _FEWER_ROWS:
            if len(part) <= room:
                break
            part = _section(layout, view, section, rows)
        kept[section.name] = part if len(part) <= room else []
        room -= len(kept[section.name])
    return {each.name: kept[each.name] for each in sections}
