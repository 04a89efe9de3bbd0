"""The first part of a report: what limits the run, and where its elapsed time went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from deepcontext.profiler.summaries.account import Cause, account
from deepcontext.profiler.summaries.verdict import WAITS, leading_lines, leading_set_up, verdicts
from deepcontext.ui.account_texts import base_text, causes_text, groups_of, verdict_text
from deepcontext.ui.format import format_count, format_ns, format_share
from deepcontext.ui.report.sections import part_of, source_columns
from deepcontext.ui.report.text_layout import Column

if TYPE_CHECKING:
    from deepcontext.profiler.summaries.account import Account, Place
    from deepcontext.ui.account_texts import Group
    from deepcontext.ui.report.sections import View
    from deepcontext.ui.report.text_layout import TextLayout

_STYLES: Final = ("yellow", "green", "blue", "cyan", "magenta", "dim")
_BAR_WIDTH: Final = 60
_LEAST_CAUSE: Final = 0.01
# Lines of other threads are shown where the main thread waits this share, or where they work as long.
_LEAST_WAIT: Final = 0.1
_FEWEST: Final = 3
_WIDE: Final = 100
_WAITING: Final = (*WAITS, Cause.PROCESSOR)
_SPENT: Final = Column("spent on", rank=4)


def print_verdicts(layout: TextLayout, view: View) -> None:
    """Print what limits the run, a sentence each."""
    for verdict in verdicts(view.profile):
        layout.prose(verdict_text(view.profile, verdict), "bold", hanging="> ", indent="")


def print_account(layout: TextLayout, view: View) -> None:
    """Print the elapsed time by cause, and by line of the program."""
    found = account(view.profile)
    if not found.whole_ns:
        return
    layout.title(
        "Where the time goes",
        f"elapsed time of the main thread, {view.time(found.whole_ns)}{view.each}",
    )
    _print_bar(layout, found)
    print_places(layout, view)
    _print_set_up(layout, view)


def print_places(layout: TextLayout, view: View) -> None:
    """Print the lines with the most time, and what other threads did meanwhile."""
    found = account(view.profile)
    _print_lines(layout, view)
    others = [place for place in found.others if place.frame is not None]
    if others and found.of(*_WAITING) >= _LEAST_WAIT * found.work_ns:
        layout.prose("meanwhile, on other threads, without waits for locks:", "dim")
        columns = (Column(view.each_column), _SPENT, *source_columns(rank=3))
        cells = [
            (view.time(place.time_ns), causes_text(place, 1), *_place(view, place))
            for place in others[: max(view.limit // 2, _FEWEST)]
        ]
        layout.table(columns, cells)


def _print_set_up(layout: TextLayout, view: View) -> None:
    """Print the lines of a set-up in which the program works at least half as long as in its steady state."""
    found = leading_set_up(view.basis)
    if found is None:
        return
    step = format_count(view.basis.first_step)
    base = base_text(found, leading_lines(found))
    layout.prose(f"before step {step}; share of {base}:", "dim")
    columns = (Column("time"), Column("share"), _SPENT, *source_columns(rank=3))
    cells = [
        (
            format_ns(place.time_ns),
            format_share(place.time_ns / found.work_ns),
            causes_text(place, 1),
            *_place(view, place),
        )
        for place in found.lines[: max(view.limit // 2, _FEWEST)]
    ]
    layout.table(columns, cells)


def _print_lines(layout: TextLayout, view: View) -> None:
    found = account(view.profile)
    leading = leading_lines(found)
    by_gpu, notable = leading.by_gpu, leading.lines[: view.limit]
    if not notable:
        return
    lines = part_of(
        sum(place.frame is not None for place in notable),
        sum(place.frame is not None for place in found.lines),
    )
    layout.prose(
        f"by line{lines}, without deeper lines of yours; share of "
        f"{base_text(found, leading, view.basis.steps)}:",
        "dim",
    )
    has_gpu = any(place.gpu_ns for place in notable)
    time, gpu = Column(view.each_column), Column("GPU", rank=0 if by_gpu else 2)
    columns = (gpu, Column("share"), time) if by_gpu else (time, Column("share"), *[gpu] * has_gpu)
    cells = []
    for place in notable:
        host, device = (view.time(value) for value in (place.time_ns, place.gpu_ns))
        share = format_share(leading.value(place) / leading.whole_ns)
        values_shown = (device, share, host) if by_gpu else (host, share, *[device] * has_gpu)
        most = 2 if layout.width >= _WIDE else 1
        cells.append((*values_shown, causes_text(place, most), *_place(view, place)))
    layout.table((*columns, _SPENT, *source_columns(rank=3)), cells)


def _place(view: View, place: Place) -> tuple[str, str]:
    return view.source_cells(place.frame) if place.frame else ("outside your code", "")


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
