"""The parts of a report about ranks that are joined into one tree: which are slow, and how all differ."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.summaries import joined_ranks
from deepcontext.ui.format import Elide, format_bytes, format_count, format_ns
from deepcontext.ui.report.sections import part_of
from deepcontext.ui.report.text_layout import Column

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deepcontext.profiler.model.job.rank_row import RankRow
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.ui.report.sections import View
    from deepcontext.ui.report.text_layout import TextLayout

_MOST: Final = 10
_FEWER_TYPICAL: Final = 5
_ENDED: Final = {"exit": "", "snapshot": "running or killed"}
_VALUES: Final[dict[str, Callable[[RankRow], int]]] = {
    "working": joined_ranks.working_ns,
    "elapsed": lambda row: row.wall_ns,
    "operators": lambda row: row.operator_ns,
    "running": lambda row: row.running_ns,
    "waiting": lambda row: row.waiting_ns,
}
_DROPPED: Final = {"elapsed": 3, "operators": 4, "running": 5}
_SUMMARY: Final[dict[str, Callable[[Sequence[int]], float]]] = {
    "least": min,
    "median": statistics.median,
    "most": max,
}


def ranks_fact(profile: Profile) -> str:
    """Return ``"1,024 on 128 hosts, 9.80 s to 10.2 s elapsed"``; "" without joined ranks."""
    rows = joined_ranks.rows(profile)
    if not rows:
        return ""
    hosts = len({row.hostname for row in rows if row.hostname})
    least, most = min(row.wall_ns for row in rows), max(row.wall_ns for row in rows)
    facts = [f"{format_count(len(rows))} on {format_count(hosts)} hosts" if hosts else ""]
    facts.append(f"{format_ns(least)} to {format_ns(most)} elapsed")
    ends = Counter(_ended(row) for row in rows if _ended(row)).most_common(2)
    facts += [f"{format_count(count)} {end}" for end, count in ends]
    return ", ".join(filter(None, facts))


def print_joined_ranks(layout: TextLayout, view: View) -> None:
    """Print the slowest and some typical ranks, and the least, median and largest values."""
    rows = joined_ranks.rows(view.profile)
    ordered = joined_ranks.slowest(rows)
    slow = ordered[: min(_MOST, view.limit)]
    typical = _typical(ordered[len(slow) :], len(rows) // 2 - len(slow), view.limit)
    note = "working: in operators, and running between them; ranks wait for slower ones"
    layout.title(f"Ranks{part_of(len(slow) + len(typical), len(rows))}", note)
    cells = [(name, *_cells(row)) for name, of in _named(slow, typical) for row in of]
    for name, of_all in _SUMMARY.items():
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


def _typical(ordered: Sequence[RankRow], middle: int, limit: int) -> list[RankRow]:
    """Return ranks around the median; few where the table is short."""
    count = max(1, min(_MOST, limit - _FEWER_TYPICAL))
    start = max(0, middle - count // 2)
    return list(ordered[start : start + count])


def _cells(row: RankRow) -> tuple[str, ...]:
    return (
        str(row.rank),
        *(format_ns(value(row) or None) for value in _VALUES.values()),
        format_bytes(row.peak_rss_bytes) if row.peak_rss_bytes else "-",
        row.hostname,
        _ended(row) or (f"lacks {', '.join(row.lacking)}" if row.lacking else ""),
    )


def _ended(row: RankRow) -> str:
    return row.ended or _ENDED.get(row.exit_reason, row.exit_reason)
