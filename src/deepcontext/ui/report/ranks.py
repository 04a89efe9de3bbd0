"""The part of a report about the ranks of a merged profile: their work, and where they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.profiler.summaries import (
    collectives,
    communication,
    joined_ranks,
    late_places,
    late_ranks,
)
from deepcontext.profiler.summaries import ranks as rank_summary
from deepcontext.ui import rank_texts
from deepcontext.ui.format import Elide, format_count, format_ns, format_rate
from deepcontext.ui.report.joined_ranks import print_joined_ranks
from deepcontext.ui.report.sections import part_of, source_columns
from deepcontext.ui.report.text_layout import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

    from deepcontext.profiler.summaries.late_ranks import RankDelays
    from deepcontext.profiler.summaries.ranks import RankTime
    from deepcontext.ui.report.sections import View
    from deepcontext.ui.report.text_layout import TextLayout


def print_ranks(layout: TextLayout, view: View) -> None:
    """Print what each rank did, and the lines that take longer on some ranks than on others."""
    profile = view.profile
    rows = rank_summary.by_rank(profile)
    if not rows:
        return
    if joined_ranks.rows(profile):
        print_joined_ranks(layout, view)
    else:
        _print_side_by_side(layout, view, rows)
        _print_collectives(layout, view)
    _print_late(layout, view)
    _print_communication(layout, view)
    _print_lines(layout, view, rows)


def _print_side_by_side(layout: TextLayout, view: View, rows: Sequence[RankTime]) -> None:
    shown = part_of(min(view.limit, len(rows)), len(rows))
    layout.title(f"Ranks{shown}", rank_texts.RANKS)
    layout.table(
        (Column("rank"), Column("operators"), Column("running"), Column("waiting")),
        [
            (
                str(row.rank),
                format_ns(row.operator_ns or None),
                format_ns(row.running_ns or None),
                format_ns(row.waiting_ns or None),
            )
            for row in rows[: view.limit]
        ],
    )


def _print_collectives(layout: TextLayout, view: View) -> None:
    rows = collectives.by_rank(view.profile)
    if not rows:
        return
    shown = part_of(min(view.limit, len(rows)), len(rows))
    layout.title(f"Collectives of compiled programs{shown}", rank_texts.COMPILED)
    layout.table(
        (Column("rank"), Column("total"), Column("waiting")),
        [
            (str(row.rank), format_ns(row.total_ns), format_ns(row.waiting_ns or None))
            for row in rows[: view.limit]
        ],
    )


def _print_late(layout: TextLayout, view: View) -> None:
    found = late_ranks.by_lateness(view.profile)
    if found is None:
        return
    if found.reason:
        layout.title("Late ranks", rank_texts.late_text(found))
        return
    rows = sorted(found.rows, key=lambda row: -row.caused_ns)[: view.limit]
    layout.title(f"Late ranks{part_of(len(rows), len(found.rows))}", rank_texts.late_text(found))
    layout.table(
        (
            Column("rank"),
            Column("made others wait"),
            Column("longest once", rank=3),
            Column("waited"),
            Column("collectives", rank=3),
            Column("mostly", rank=2),
            Column("of it", rank=2),
            Column("over the run", rank=4),
            *source_columns(),
        ),
        [_late_row(layout, view, row, rows[0]) for row in rows],
    )


def _late_row(
    layout: TextLayout, view: View, row: RankDelays, worst: RankDelays
) -> tuple[str | Text, ...]:
    place = late_places.main_place(view.profile, row, worst.caused_ns)
    frame = place.frame if place else None
    return (
        str(row.rank),
        format_ns(row.caused_ns or None),
        format_ns(row.longest_ns or None),
        format_ns(row.waiting_ns or None),
        format_ns(row.total_ns or None),
        place.doing if place else "",
        f"{place.share:.0%}" if place else "",
        layout.columns(row.over_time_ns, max(worst.over_time_ns)),
        *(view.source_cells(frame) if frame else ("",) * len(source_columns())),
    )


def _print_communication(layout: TextLayout, view: View) -> None:
    found = communication.by_operation(view.profile)
    if not found:
        return
    rows = found[: view.limit]
    layout.title(
        f"Communication{part_of(len(rows), len(found))}",
        rank_texts.COMMUNICATION,
    )
    layout.table(
        (
            Column("transfer"),
            Column("waiting"),
            Column("exposed", rank=3),
            Column("calls"),
            Column("algorithm", rank=4),
            Column("bus", rank=4),
            Column("members", rank=2),
            Column("last most often", rank=3),
            Column("operation", Elide.END),
        ),
        [
            (
                format_ns(row.transfer_ns or None),
                format_ns(row.waiting_ns or None),
                "" if row.exposed_share < 0 else f"{row.exposed_share:.0%}",
                format_count(row.calls),
                format_rate(row.bytes_per_s),
                format_rate(row.bus_bytes_per_s),
                str(len(row.members)),
                rank_texts.last_text(row),
                f"{rank_texts.sized_text(row)} in {rank_texts.group_text(row)}",
            )
            for row in rows
        ],
    )


def _print_lines(layout: TextLayout, view: View, rows: Sequence[RankTime]) -> None:
    lines = rank_summary.uneven_lines(view.profile, view.limit)
    if not lines:
        return
    layout.title("Lines by imbalance", rank_texts.LINES)
    layout.table(
        (
            Column("mean"),
            Column("least", rank=2),
            Column("of rank", rank=3),
            Column("most"),
            Column("of rank"),
            *source_columns(),
        ),
        [
            (
                format_ns(sum(line.by_rank) / len(line.by_rank) or None),
                format_ns(min(line.by_rank) or None),
                str(rows[line.by_rank.index(min(line.by_rank))].rank),
                format_ns(max(line.by_rank) or None),
                str(rows[line.by_rank.index(max(line.by_rank))].rank),
                *view.source_cells(line),
            )
            for line in lines
        ],
    )
