"""The parts of a report about ranks that are joined into one tree: which are slow, and how all differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.summaries import joined_ranks
from deepcontext.ui import rank_texts
from deepcontext.ui.format import Elide, format_bytes, format_ns
from deepcontext.ui.report.sections import part_of
from deepcontext.ui.report.text_layout import Column

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deepcontext.profiler.model.job.rank_row import RankRow
    from deepcontext.ui.report.sections import View
    from deepcontext.ui.report.text_layout import TextLayout

_MOST: Final = 10
_FEWER_TYPICAL: Final = 5
_VALUES: Final[dict[str, Callable[[RankRow], int]]] = {
    "working": joined_ranks.working_ns,
    "elapsed": lambda row: row.wall_ns,
    "operators": lambda row: row.operator_ns,
    "running": lambda row: row.running_ns,
    "waiting": lambda row: row.waiting_ns,
}
_DROPPED: Final = {"elapsed": 3, "operators": 4, "running": 5}


def print_joined_ranks(layout: TextLayout, view: View) -> None:
    """Print the slowest and some typical ranks, and the least, median and largest values."""
    rows = joined_ranks.rows(view.profile)
    ordered = joined_ranks.slowest(rows)
    slow = ordered[: min(_MOST, view.limit)]
    # Few typical ranks where the table is short.
    count = max(1, min(_MOST, view.limit - _FEWER_TYPICAL))
    typical = joined_ranks.typical(ordered, len(slow), count)
    layout.title(f"Ranks{part_of(len(slow) + len(typical), len(rows))}", rank_texts.JOINED_RANKS)
    cells = [(name, *_cells(row)) for name, of in _named(slow, typical) for row in of]
    for name, of_all in joined_ranks.SUMMARY.items():
        values = [
            format_ns(of_all([value(row) for row in rows]) or None) for value in _VALUES.values()
        ]
        memory = of_all([row.peak_rss_bytes for row in rows])
        cells.append((name, "", *values, format_bytes(memory) if memory else "-", "", ""))
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


def _named(
    slow: Sequence[RankRow], typical: Sequence[RankRow]
) -> tuple[tuple[str, Sequence[RankRow]], ...]:
    return ("slowest", slow), ("typical", typical)


def _cells(row: RankRow) -> tuple[str, ...]:
    return (
        str(row.rank),
        *(format_ns(value(row) or None) for value in _VALUES.values()),
        format_bytes(row.peak_rss_bytes) if row.peak_rss_bytes else "-",
        row.hostname,
        rank_texts.ended_text(row),
    )
