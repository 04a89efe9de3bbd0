"""The ranks of a merged profile: their work, who was late, what they exchanged, and where they differ."""

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
from deepcontext.ui.format import part_of
from deepcontext.ui.sections.table import Column, Table, Unit, picked, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from deepcontext.profiler.model.job.rank_row import RankRow
    from deepcontext.profiler.summaries.late_ranks import RankDelays
    from deepcontext.ui.sections.table import Row
    from deepcontext.ui.sections.view import View

_MOST: Final = 10
_FEWER_TYPICAL: Final = 5
_MOST_BARS: Final = 60
# Of a late rank, in JSON.
_MOST_PLACES: Final = 3
_IN_JSON: Final = ("rank", "operator_ns", "running_ns", "waiting_ns")
_VALUES: Final[dict[str, Callable[[RankRow], int]]] = {
    "working_ns": ranks.working_ns,
    "wall_ns": lambda row: row.wall_ns,
    "operator_ns": lambda row: row.operator_ns,
    "running_ns": lambda row: row.running_ns,
    "waiting_ns": lambda row: row.waiting_ns,
    "peak_rss_bytes": lambda row: row.peak_rss_bytes,
}
_RANK: Final = Column("rank", "rank", Unit.NUMBER)
_TIMES: Final = (
    Column("which", "which", Unit.NUMBER),
    _RANK,
    Column("working_ns", "working", Unit.NS),
    Column("wall_ns", "elapsed", Unit.NS, rank=3),
    Column("operator_ns", "operators", Unit.NS, rank=4),
    Column("running_ns", "running", Unit.NS, rank=5),
    Column("waiting_ns", "waiting", Unit.NS),
    Column("peak_rss_bytes", "memory", Unit.BYTES, rank=2),
    Column("hostname", "host", Unit.NAME, rank=1),
    Column("ended", "ended", Unit.TEXT, rank=6),
)
_LATE: Final = (
    _RANK,
    Column("caused_ns", "made others wait", Unit.NS),
    Column("error_ns", "error", Unit.NS, rank=6),
    Column("longest_ns", "longest once", Unit.NS, rank=3),
    Column("waiting_ns", "waited", Unit.NS),
    Column("total_ns", "collectives", Unit.NS, rank=3),
    Column("doing", "mostly", Unit.NUMBER, rank=2),
    Column("share", "of it", Unit.SHARE, rank=2),
    Column("over_time", "over the run", Unit.HISTORY, rank=4),
)
_EXCHANGE: Final = (
    Column("transfer_ns", "transfer", Unit.NS),
    Column("waiting_ns", "waiting", Unit.NS),
    Column(
        lambda row: None if row["exposed_share"] < 0 else row["exposed_share"],
        "exposed",
        Unit.SHARE,
        rank=3,
    ),
    Column("calls", "calls", Unit.COUNT),
    Column(lambda row: row["calls"] * row["size_bytes"], "bytes", Unit.BYTES, rank=5),
    Column("bytes_per_s", "algorithm", Unit.RATE, rank=4),
    Column("bus_bytes_per_s", "bus", Unit.RATE, rank=4),
    Column(lambda row: len(row["members"]), "members", Unit.COUNT, rank=2),
    Column("last_text", "last most often", Unit.NUMBER, rank=3),
    Column("text", "operation", Unit.TEXT),
)


def tables(view: View) -> Iterator[Table]:
    """Return what each rank did, and where ranks differ; nothing for a profile of one process."""
    if ranks.by_rank(view.profile):
        yield times(view)
        yield _collectives(view)
        yield late(view)
        yield exchanges(view)
        yield uneven_lines(view)


def times(view: View, most_listed: int = _MOST) -> Table:
    """Return what all ranks did; of many, the slowest, some typical ones, and values over all."""
    rows = ranks.by_rank(view.profile)
    if len(rows) <= min(most_listed, view.limit):
        shown = len(rows)
        cells = [_time(row) for row in rows]
    else:
        ordered = ranks.slowest(rows)
        slow = ordered[: min(_MOST, view.limit)]
        # Few typical ranks where the table is short.
        typical = ranks.typical(ordered, len(slow), max(1, min(_MOST, view.limit - _FEWER_TYPICAL)))
        shown = len(slow) + len(typical)
        cells = [_time(row, "slowest") for row in slow]
        cells += [_time(row, "typical") for row in typical]
        cells += [
            {
                **dict.fromkeys((str(column.value) for column in _TIMES), ""),
                "which": name,
                **{key: of_all([value(row) for row in rows]) for key, value in _VALUES.items()},
            }
            for name, of_all in ranks.SUMMARY.items()
        ]
    return Table("Ranks", rank_texts.RANKS, _TIMES, cells, of=part_of(shown, len(rows)))


def _time(row: RankRow, which: str = "") -> Row:
    return {
        "which": which,
        "rank": row.rank,
        **{key: value(row) for key, value in _VALUES.items()},
        "hostname": row.hostname,
        "ended": rank_texts.ended_text(row),
    }


def _collectives(view: View) -> Table:
    rows = collectives.by_rank(view.profile)
    columns = (
        _RANK,
        Column("total_ns", "total", Unit.NS),
        Column("waiting_ns", "waiting", Unit.NS),
    )
    shown = [plain(row) for row in rows[: view.limit]]
    title = "Collectives of compiled programs"
    return Table(title, rank_texts.COMPILED, columns, shown, len(rows))


def late(view: View) -> Table:
    """Return who made others wait, where and when; without rows, `above` may say why."""
    found = late_ranks.by_lateness(view.profile)
    if found is None or found.reason:
        return Table("Late ranks", "", (), (), above=found.reason if found else "")
    rows = sorted(found.rows, key=lambda row: -row.caused_ns)[: view.limit]
    shown = [_late_row(view, row, rows[0]) for row in rows]
    columns = (*_LATE, *view.line_columns())
    return Table("Late ranks", rank_texts.late_text(found), columns, shown, len(found.rows))


def _late_row(view: View, row: RankDelays, worst: RankDelays) -> Row:
    place = late_places.main_place(view.profile, row, worst.caused_ns)
    return {
        **plain(row),
        "over_time": _history(row.over_time_ns, max(worst.over_time_ns)),
        "doing": place.doing if place else "",
        "share": place.share if place else "",
        **view.frame(place.frame if place else None),
    }


def exchanges(view: View) -> Table:
    """Return what the ranks exchanged, by operation, group and size."""
    found = communication.by_operation(view.profile)
    rows = [
        {
            **plain(row),
            "last_text": rank_texts.last_text(row),
            "text": f"{rank_texts.sized_text(row)} in {rank_texts.group_text(row)}",
        }
        for row in found[: view.limit]
    ]
    return Table("Communication", rank_texts.COMMUNICATION, _EXCHANGE, rows, len(found))


def uneven_lines(view: View) -> Table:
    """Return the lines that take longer on some ranks than on others."""
    rows = ranks.by_rank(view.profile)

    def of_rank(of: Callable[[Sequence[int]], int]) -> Callable[[Row], int]:
        return lambda row: rows[row["by_rank"].index(of(row["by_rank"]))].rank

    columns = (
        Column(lambda row: _history(row["by_rank"]), "over the ranks", Unit.HISTORY, rank=6),
        Column(lambda row: sum(row["by_rank"]) / len(row["by_rank"]), "mean", Unit.NS),
        Column(lambda row: min(row["by_rank"]), "least", Unit.NS, rank=2),
        Column(of_rank(min), "of rank", Unit.NUMBER, rank=3),
        Column(lambda row: max(row["by_rank"]), "most", Unit.NS),
        Column(of_rank(max), "of rank", Unit.NUMBER),
        *view.line_columns(),
    )
    return Table("Lines by imbalance", rank_texts.LINES, columns, _uneven(view))


def _history(values: Sequence[int], most: int = 0) -> list[float]:
    """Return values as parts of the largest, in at most `_MOST_BARS` bars of the largest in each."""
    each = -(-len(values) // _MOST_BARS)
    bars = [max(values[n : n + each]) for n in range(0, len(values), each)]
    return [value / (most or max(bars) or 1) for value in bars]


def _uneven(view: View) -> list[Row]:
    return [
        {**view.line(line), "by_rank": list(line.by_rank)}
        for line in ranks.uneven_lines(view.profile, view.limit)
    ]


def ranks_to_dict(view: View) -> dict[str, object] | None:
    """Return what is known of the ranks, None for a profile of one process."""
    profile = view.profile
    rows = ranks.by_rank(profile)
    if not rows:
        return None
    late = late_ranks.by_lateness(profile)
    return {
        "rows": [picked(row, *_IN_JSON) for row in rows],
        "collectives": plain(collectives.by_rank(profile)),
        "late": late
        and {
            **plain(late),
            "rows": [{**plain(row), "places": _places(view, row)} for row in late.rows],
        },
        "communication": plain(communication.by_operation(profile)),
        "uneven_lines": _uneven(view),
    }


def _places(view: View, row: RankDelays) -> list[Row]:
    places = late_places.late_places(view.profile, row.rank) if row.caused_ns else ()
    return [
        {**view.frame(place.frame), **picked(place, "doing", "excess_ns", "share")}
        for place in places[:_MOST_PLACES]
    ]
