"""The ranks of a merged profile as the page shows them: what each did, who was late, what they exchanged.

Says the same as the report's sections about ranks (`ui/report/ranks.py`). For ranks side by side, the
page adds up a node's values by rank from the tree; joined ranks have no trees of their own, so that their
values at the largest paths are columns here.
"""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any, Final

from deepcontext.profiler.model.job import sections
from deepcontext.profiler.model.job.columns import STEP
from deepcontext.profiler.summaries import (
    collectives,
    communication,
    joined_ranks,
    late_places,
    late_ranks,
)
from deepcontext.profiler.summaries import ranks as rank_summary
from deepcontext.ui import rank_texts
from deepcontext.ui.format import shorten_path
from deepcontext.ui.web.answers import (
    ExchangeRow,
    LateRank,
    LinePlace,
    RankBins,
    RankLine,
    RankName,
    RanksAnswer,
    RankTimes,
)
from deepcontext.ui.web.container import pack
from deepcontext.ui.web.json_text import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from deepcontext.profiler.model.job.rank_row import RankRow
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.communication import Exchange
    from deepcontext.profiler.summaries.joined_ranks import KeptValues
    from deepcontext.profiler.summaries.late_ranks import RankDelays

    Columns = dict[str, npt.NDArray[Any]]

_PARTS: Final = ("in operators", "running between operators", "waiting", "loading data")
_MOST: Final = 10
_MOST_LINES: Final = 10
_UNKNOWN: Final = -1
_ONE: Final = "not known: there is only one rank"
_NO_COLLECTIVES: Final = (
    "not known: no rank recorded single collectives, which needs PyTorch's gloo, or JAX on the CPU"
)


def packed_ranks(profile: Profile, *, level: int) -> bytes:
    """Return the ranks of a merged profile: a compressed container (`container.py`).

    Args:
        profile: the profile.
        level: level of compression.

    Raises:
        ProfileDataError: a section about the ranks cannot be read.
    """
    kept = joined_ranks.kept_values(profile) if sections.is_job(profile) else None
    answer = ranks_answer(profile, list(kept.codes) if kept else [])
    columns = _columns(profile, kept) if kept else {}
    return gzip.compress(pack(to_json(answer), columns), level, mtime=0)


def ranks_answer(profile: Profile, metrics: list[str]) -> RanksAnswer:
    """Return the ranks of a merged profile.

    Args:
        profile: the profile.
        metrics: the metrics whose values by rank are columns.

    Raises:
        ProfileDataError: a section about the ranks cannot be read.
    """
    joined = joined_ranks.rows(profile)
    late, late_note = _late(profile)
    bins = joined_ranks.histogram(joined) if joined else None
    exchanges = communication.by_operation(profile) if late else ()
    return RanksAnswer(
        fact=rank_texts.ranks_fact(profile),
        note=rank_texts.JOINED_RANKS if joined else rank_texts.RANKS,
        parts=list(_PARTS[:-1] if joined else _PARTS),
        names=_names(profile),
        rows=_of_joined(joined, is_long=bins is not None)
        if joined
        else _side_by_side(profile, late),
        bins=RankBins(bins.least_ns, bins.most_ns, list(bins.bins)) if bins else None,
        collectives_note="" if late or not collectives.by_rank(profile) else rank_texts.COMPILED,
        late=late,
        late_note=late_note,
        exchanges=[_exchange(row) for row in exchanges],
        exchanges_note=rank_texts.COMMUNICATION if exchanges else late_note,
        lines=_lines(profile),
        lines_note=rank_texts.LINES,
        metrics=metrics,
        step=STEP,
    )


def _columns(profile: Profile, kept: KeptValues) -> Columns:
    """Return what `web/src/jobs/by_rank.ts` reads: values by rank at the largest paths, and spreads."""
    columns: Columns = {"node": kept.node}
    spreads = sections.spreads_of(profile)
    for index, (metric, codes) in enumerate(kept.codes.items()):
        columns[f"{index}.codes"] = codes.ravel()
        spread = spreads[metric].columns()
        for name in ("node", "total", "most", "most_rank"):
            columns[f"{index}.{name}"] = spread[name]
    return columns


def _names(profile: Profile) -> list[RankName]:
    return [
        RankName(row.rank, row.hostname, _UNKNOWN, row.name) for row in joined_ranks.rows(profile)
    ] or [RankName(rank, "", node, "") for rank, node in rank_summary.rank_nodes(profile)]


def _side_by_side(profile: Profile, late: Sequence[LateRank]) -> list[RankTimes]:
    of_compiled = {row.rank: (row.total_ns, row.waiting_ns) for row in collectives.by_rank(profile)}
    in_collectives = {row.rank: (row.collective_ns, row.waited_ns) for row in late} or of_compiled
    rows = []
    for row, loading in zip(
        rank_summary.by_rank(profile), rank_summary.loading_by_rank(profile), strict=True
    ):
        loading_ns = loading.operator_ns + loading.running_ns + loading.waiting_ns
        collective_ns, waited_ns = in_collectives.get(row.rank, (_UNKNOWN, _UNKNOWN))
        rows.append(
            RankTimes(
                name="",
                rank=row.rank,
                parts_ns=[
                    row.operator_ns - loading.operator_ns,
                    row.running_ns - loading.running_ns,
                    row.waiting_ns - loading.waiting_ns,
                    loading_ns,
                ],
                working_ns=_UNKNOWN,
                operator_ns=row.operator_ns,
                running_ns=row.running_ns,
                waiting_ns=row.waiting_ns,
                loading_ns=loading_ns,
                elapsed_ns=_UNKNOWN,
                collective_ns=collective_ns,
                waited_ns=waited_ns,
                peak_bytes=_UNKNOWN,
                ended="",
            )
        )
    return rows


def _of_joined(found: Sequence[RankRow], *, is_long: bool) -> list[RankTimes]:
    """Return all ranks; of many the slowest and typical ones, and values over all."""
    if not is_long:
        return [_joined(row, "") for row in found]
    ordered = joined_ranks.slowest(found)
    typical = joined_ranks.typical(ordered, _MOST, _MOST)
    return [
        *(_joined(row, "slowest") for row in ordered[:_MOST]),
        *(_joined(row, "typical") for row in typical),
        *(_over_all(found, name, of_all) for name, of_all in joined_ranks.SUMMARY.items()),
    ]


def _joined(row: RankRow, name: str) -> RankTimes:
    return RankTimes(
        name=name,
        rank=row.rank,
        parts_ns=[row.operator_ns, row.running_ns, row.waiting_ns],
        working_ns=joined_ranks.working_ns(row),
        operator_ns=row.operator_ns,
        running_ns=row.running_ns,
        waiting_ns=row.waiting_ns,
        loading_ns=_UNKNOWN,
        elapsed_ns=row.wall_ns,
        collective_ns=_UNKNOWN,
        waited_ns=_UNKNOWN,
        peak_bytes=row.peak_rss_bytes or _UNKNOWN,
        ended=rank_texts.ended_text(row),
    )


def _over_all(
    found: Sequence[RankRow], name: str, of_all: Callable[[Sequence[int]], float]
) -> RankTimes:
    def value(of_row: Callable[[RankRow], int]) -> int:
        return round(of_all([of_row(row) for row in found]))

    return RankTimes(
        name=name,
        rank=_UNKNOWN,
        parts_ns=[],
        working_ns=value(joined_ranks.working_ns),
        operator_ns=value(lambda row: row.operator_ns),
        running_ns=value(lambda row: row.running_ns),
        waiting_ns=value(lambda row: row.waiting_ns),
        loading_ns=_UNKNOWN,
        elapsed_ns=value(lambda row: row.wall_ns),
        collective_ns=_UNKNOWN,
        waited_ns=_UNKNOWN,
        peak_bytes=value(lambda row: row.peak_rss_bytes) or _UNKNOWN,
        ended="",
    )


def _late(profile: Profile) -> tuple[list[LateRank], str]:
    """Return late ranks ascending, and what they are known from; or why nothing is known."""
    if rank_summary.rank_count(profile) == 1:
        return [], _ONE
    found = late_ranks.by_lateness(profile)
    if found is None:
        return [], _NO_COLLECTIVES
    worst_ns = max((row.caused_ns for row in found.rows), default=0)
    rows = [_late_rank(profile, row, worst_ns) for row in found.rows]
    return rows, rank_texts.late_text(found)


def _late_rank(profile: Profile, row: RankDelays, worst_ns: int) -> LateRank:
    place = late_places.main_place(profile, row, worst_ns)
    frame = place.frame if place else None
    return LateRank(
        rank=row.rank,
        caused_ns=row.caused_ns,
        error_ns=row.error_ns,
        longest_ns=row.longest_ns,
        waited_ns=row.waiting_ns,
        collective_ns=row.total_ns,
        over_time_ns=list(row.over_time_ns),
        doing=place.doing if place else "",
        share=place.share if place else 0,
        place=_place(profile, frame.file, frame.line) if frame else LinePlace("", "", 0),
    )


def _exchange(row: Exchange) -> ExchangeRow:
    return ExchangeRow(
        operation=row.operation,
        group=rank_texts.group_text(row),
        members=len(row.members),
        size_bytes=row.size_bytes,
        calls=row.calls,
        bytes=row.calls * row.size_bytes,
        transfer_ns=row.transfer_ns,
        waiting_ns=row.waiting_ns,
        bytes_per_s=row.bytes_per_s,
        bus_bytes_per_s=row.bus_bytes_per_s,
        exposed_share=row.exposed_share,
        last=rank_texts.last_text(row),
    )


def _lines(profile: Profile) -> list[RankLine]:
    return [
        RankLine(line.function, _place(profile, line.file, line.line), list(line.by_rank))
        for line in rank_summary.uneven_lines(profile, _MOST_LINES)
    ]


def _place(profile: Profile, file: str, line: int) -> LinePlace:
    return LinePlace(file, shorten_path(file, profile.run.cwd), line)
