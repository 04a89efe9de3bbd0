"""The first part of a report: what limits the run, and where its elapsed time went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from deepcontext.profiler.summaries.account import Cause, account
from deepcontext.profiler.summaries.verdict import verdicts
from deepcontext.ui.account_texts import groups_of, verdict_text
from deepcontext.ui.format import format_share
from deepcontext.ui.report.tables import print_rows
from deepcontext.ui.sections import account as tables

if TYPE_CHECKING:
    from deepcontext.profiler.summaries.account import Account
    from deepcontext.ui.account_texts import Group
    from deepcontext.ui.report.text_layout import TextLayout
    from deepcontext.ui.sections.table import Table
    from deepcontext.ui.sections.view import View

_STYLES: Final = ("yellow", "green", "blue", "cyan", "magenta", "dim")
_BAR_WIDTH: Final = 60
_LEAST_CAUSE: Final = 0.01
_WIDE: Final = 100


def print_verdicts(layout: TextLayout, view: View) -> None:
    """Print what limits the run, a sentence each."""
    for verdict in verdicts(view.profile):
        layout.prose(verdict_text(view.profile, verdict), "bold", hanging="> ", indent="")


def print_account(layout: TextLayout, view: View) -> None:
    """Print the elapsed time by cause, and by line of the program."""
    found = account(view.profile)
    # A file of another tool may have devices alone: there is nothing to divide.
    is_known = found.whole_ns > found.of(Cause.UNKNOWN) or view.profile.trust.read_from is None
    if not found.whole_ns or not is_known:
        return
    layout.title(
        "Where the time goes",
        f"elapsed time of the main thread, {view.time(found.whole_ns)}{view.each}",
    )
    _print_bar(layout, found)
    print_places(layout, view)
    _print(layout, tables.set_up(view))


def print_places(layout: TextLayout, view: View) -> None:
    """Print the lines with the most time, and what other threads did meanwhile."""
    lines = tables.lines(view, 2 if layout.width >= _WIDE else 1)
    for table in (lines, tables.other_threads(view)):
        _print(layout, table)


def _print(layout: TextLayout, table: Table | None) -> None:
    if table is not None and table.rows:
        layout.prose(table.note, "dim")
        print_rows(layout, table)


def _print_bar(layout: TextLayout, found: Account) -> None:
    groups = groups_of(found)
    width = min(_BAR_WIDTH, layout.width - 4)
    styled = [(group.share, style) for group, style in zip(groups, _STYLES, strict=True)]
    layout.line(Text("  ").append_text(layout.divided_bar(styled, width)))
    layout.flow([
        Text(f"{glyph} {group.name} {format_share(group.share)}{_details(group)}", style)
        for group, glyph, style in zip(groups, layout.glyphs.bars, _STYLES, strict=True)
        if group.share
    ])


def _details(group: Group) -> str:
    """Return ``" (forward 20.1 %, backward 40.2 %)"``, without small parts."""
    parts = [
        f"{name} {format_share(share)}" for name, share in group.parts if share >= _LEAST_CAUSE
    ]
    return f" ({', '.join(parts)})" if parts else ""
