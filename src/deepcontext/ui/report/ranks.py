"""The part of a report about the ranks of a merged profile: their work, and where they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.summaries import (
    collectives,
    communication,
    late_places,
    late_ranks,
    ranks,
)
from deepcontext.ui import rank_texts
from deepcontext.ui.format import Elide, format_bytes, format_count, format_ns, format_rate
from deepcontext.ui.report.sections import part_of, source_columns
from deepcontext.ui.report.text_layout import Column

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.text import Text

    from deepcontext.profiler.model.job.rank_row import RankRow
    from deepcontext.profiler.summaries.late_ranks import RankDelays
    from deepcontext.ui.report.sections import View
    from deepcontext.ui.report.text_layout import TextLayout


_MOST: Final = 10
_FEWER_TYPICAL: Final = 5
_VALUES: Final[dict[str, Callable[[RankRow], int]]] = {
    "working": ranks.working_ns,
    "elapsed": lambda row: row.wall_ns,
    "operators": lambda row: row.operator_ns,
    "running": lambda row: row.running_ns,
    "waiting": lambda row: row.waiting_ns,
}
_DROPPED: Final = {"elapsed": 3, "operators": 4, "running": 5}


def print_ranks(layout: TextLayout, view: View) -> None:
    """Print what each rank did, and the lines that take longer on some ranks than on others."""
    rows = ranks.by_rank(view.profile)
    if not rows:
        return
    _print_times(layout, view, rows)
    _print_collectives(layout, view)
    _print_late(layout, view)
    _print_communication(layout, view)
    _print_lines(layout, view, rows)


def _print_times(layout: TextLayout, view: View, rows: Sequence[RankRow]) -> None:
    """Print all ranks, or the slowest, some typical ones, and the least, median and largest values."""
    if len(rows) <= min(_MOST, view.limit):
        shown = len(rows)
        cells = [("", *_cells(row)) for row in rows]
    else:
        ordered = ranks.slowest(rows)
        slow = ordered[: min(_MOST, view.limit)]
        # Few typical ranks where the table is short.
        typical = ranks.typical(ordered, len(slow), max(1, min(_MOST, view.limit - _FEWER_TYPICAL)))
        shown = len(slow) + len(typical)
        named = [("slowest", row) for row in slow] + [("typical", row) for row in typical]
        cells = [(name, *_cells(row)) for name, row in named]
        cells += [_over_all(name, of_all, rows) for name, of_all in ranks.SUMMARY.items()]
    layout.title(f"Ranks{part_of(shown, len(rows))}", rank_texts.RANKS)
    layout.table(
        (
            Column("which"),
            Column("rank"),
            *(Column(name, rank=_DROPPED.get(name, 0)) for name in _VALUES),
            Column("memory", rank=2),
            Column("host", Elide.MIDDLE, rank=1),
            Column("ended", Elide.END, rank=6),
        ),
        cells,
    )


def _cells(row: RankRow) -> tuple[str, ...]:
    return (
        str(row.rank),
        *(format_ns(value(row) or None) for value in _VALUES.values()),
        format_bytes(row.peak_rss_bytes) if row.peak_rss_bytes else "-",
        row.hostname,
        rank_texts.ended_text(row),
    )


def _over_all(
    name: str, of_all: Callable[[Sequence[int]], float], rows: Sequence[RankRow]
) -> tuple[str, ...]:
    values = [of_all([value(row) for row in rows]) for value in _VALUES.values()]
    memory = of_all([row.peak_rss_bytes for row in rows])
    size = format_bytes(memory) if memory else "-"
    return (name, "", *(format_ns(value or None) for value in values), size, "", "")


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


def _print_lines(layout: TextLayout, view: View, rows: Sequence[RankRow]) -> None:
    lines = ranks.uneven_lines(view.profile, view.limit)
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
