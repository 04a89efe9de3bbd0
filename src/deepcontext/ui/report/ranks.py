"""The part of a report about the ranks of a merged profile: their work, and where they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.summaries import (
    collectives,
    communication,
    joined_ranks,
    late_places,
    late_ranks,
)
from deepcontext.profiler.summaries import ranks as rank_summary
from deepcontext.ui.format import Elide, format_bytes, format_count, format_ns, format_rate
from deepcontext.ui.report.joined_ranks import print_joined_ranks
from deepcontext.ui.report.sections import part_of, source_columns
from deepcontext.ui.report.text_layout import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

    from deepcontext.profiler.summaries.communication import Exchange
    from deepcontext.profiler.summaries.late_ranks import RankDelays
    from deepcontext.profiler.summaries.ranks import RankTime
    from deepcontext.ui.report.sections import View
    from deepcontext.ui.report.text_layout import TextLayout

# Of what the worst rank cost; the line of less would be noise.
_SMALL: Final = 0.1


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
    note = "running on any thread, waiting on the main thread; ranks wait for slower ones"
    layout.title(f"Ranks{shown}", note)
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
    note = "waiting for slower ranks, at least: more than the rank with the least time"
    layout.title(f"Collectives of compiled programs{shown}", note)
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
        layout.title("Late ranks", found.reason)
        return
    rows = sorted(found.rows, key=lambda row: -row.caused_ns)[: view.limit]
    of = "all" if found.compared == found.collectives else f"{found.compared:,} of"
    groups = "" if found.groups == 1 else f" of {found.groups} groups"
    left_out = "" if not found.groups_left_out else f"; {found.groups_left_out} groups left out"
    layout.title(
        f"Late ranks{part_of(len(rows), len(found.rows))}",
        f"from {of} {found.collectives:,} collectives{groups}{left_out}; the last to come makes the "
        "others wait",
    )
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
    is_small = row.caused_ns <= _SMALL * worst.caused_ns
    places = () if is_small else late_places.late_places(view.profile, row.rank)
    place = places[0] if places else None
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
        "transfer: of the ranks that came last; waiting for them: mean over the members; exposed: not "
        "beside computing; bandwidths as nccl-tests has them",
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
                f"rank {row.last}, {row.last_share:.0%}",
                f"{_sized(row)} in {_group(row)} of ranks {_numbers(row.members)}",
            )
            for row in rows
        ],
    )


def _sized(row: Exchange) -> str:
    return f"{row.operation} {format_bytes(row.size_bytes)}" if row.size_bytes else row.operation


def _group(row: Exchange) -> str:
    return row.group if row.is_function else f"group {row.group}"


def _numbers(members: Sequence[int]) -> str:
    """Return ``"0 to 3"`` or ``"0, 2"``."""
    if len(members) > 2 and members[-1] - members[0] == len(members) - 1:  # noqa: PLR2004
        return f"{members[0]} to {members[-1]}"
    return ", ".join(map(str, members))


def _print_lines(layout: TextLayout, view: View, rows: Sequence[RankTime]) -> None:
    lines = rank_summary.uneven_lines(view.profile, view.limit)
    if not lines:
        return
    layout.title("Lines by imbalance", "elapsed time of each rank, without deeper lines")
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
