"""The ranks of a merged profile as the page shows them: what each did, who was late, what they exchanged.

Tables are those of the report (`ui/sections/ranks.py`), but for what each rank did, which the page draws.
The values of each rank at the largest paths are columns.
"""

from __future__ import annotations

import gzip
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from deepcontext.profiler.model.job import sections
from deepcontext.profiler.model.job.columns import STEP, encode
from deepcontext.profiler.summaries import collectives, late_ranks, ranks
from deepcontext.profiler.summaries.basis import basis_of
from deepcontext.profiler.summaries.measures import default_metric
from deepcontext.ui import rank_texts
from deepcontext.ui.sections import ranks as tables
from deepcontext.ui.sections.view import View
from deepcontext.ui.web.answers import LateRank, RankBins, RankName, RanksAnswer, RankTimes
from deepcontext.ui.web.container import pack
from deepcontext.ui.web.json_text import to_json
from deepcontext.ui.web.tables import table_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from deepcontext.profiler.model.job.rank_row import RankRow
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.basis import Basis
    from deepcontext.profiler.summaries.late_ranks import RankDelays
    from deepcontext.profiler.summaries.ranks import LoadingTime

    Columns = dict[str, npt.NDArray[Any]]

_PARTS: Final = ("in operators", "running between operators", "waiting", "loading data")
_MOST: Final = 10
_MOST_LINES: Final = 10
_ALL: Final = 1_000_000
_UNKNOWN: Final = -1
_NOT_KNOWN: Final = (_UNKNOWN, _UNKNOWN)
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
    answer, columns = ranks_answer(profile), _columns(basis_of(profile))
    return gzip.compress(pack(to_json(answer), columns), level, mtime=0)


def ranks_answer(profile: Profile) -> RanksAnswer:
    """Return the ranks of a merged profile, in the part of the run that is shown.

    Raises:
        ProfileDataError: a section about the ranks cannot be read.
    """
    profile = basis_of(profile).profile
    found, rows = late_ranks.by_lateness(profile), ranks.by_rank(profile)
    bins = ranks.histogram(rows)
    late = found.rows if found and len(rows) > 1 else ()
    view = View(profile, default_metric(profile), _ALL)
    of_late = table_answer(tables.late(view), _ONE if len(rows) == 1 else _NO_COLLECTIVES)
    return RanksAnswer(
        fact=rank_texts.ranks_fact(profile),
        note=rank_texts.RANKS,
        parts=list(_PARTS),
        names=[RankName(row.rank, row.hostname, row.name) for row in rows],
        rows=_times(profile, late),
        bins=RankBins(bins.least_ns, bins.most_ns, list(bins.bins)) if bins else None,
        collectives_note="" if late or not collectives.by_rank(profile) else rank_texts.COMPILED,
        late_over_time=[LateRank(row.rank, list(row.over_time_ns)) for row in late],
        late=of_late,
        exchanges=table_answer(tables.exchanges(view), of_late.note),
        lines=table_answer(tables.uneven_lines(replace(view, limit=_MOST_LINES))),
        metrics=list(ranks.metrics_by_rank(profile)),
        step=STEP,
    )


def _columns(basis: Basis) -> Columns:
    """Return what `web/src/jobs/by_rank.ts` reads: values by rank at the largest paths, and spreads.

    Values are of a step where the page shows steps. Spreads are of the whole run.
    """
    profile = basis.profile
    columns: Columns = {"node": ranks.largest_nodes(profile)}
    spreads = sections.spreads_of(profile)
    for index, metric in enumerate(ranks.metrics_by_rank(profile)):
        own = np.rint(ranks.own_values(profile, metric) / (basis.steps or 1)).astype(np.int64)
        columns[f"{index}.codes"] = encode(own).ravel()
        spread = spreads[metric].columns()
        for name in ("node", "total", "most", "most_rank"):
            columns[f"{index}.{name}"] = spread[name]
    return columns


def _times(profile: Profile, late: Sequence[RankDelays]) -> list[RankTimes]:
    """Return a row for each rank; of many, the slowest and typical ranks, and values over all."""
    found, loading = ranks.by_rank(profile), ranks.loading_by_rank(profile)
    loads = {row.rank: part for row, part in zip(found, loading, strict=True)}
    if ranks.histogram(found) is None:
        of_compiled = {
            row.rank: (row.total_ns, row.waiting_ns) for row in collectives.by_rank(profile)
        }
        in_collectives = {row.rank: (row.total_ns, row.waiting_ns) for row in late} or of_compiled
        return [
            _time(row, loads[row.rank], in_collectives.get(row.rank, _NOT_KNOWN)) for row in found
        ]
    ordered = ranks.slowest(found)
    typical = ranks.typical(ordered, _MOST, _MOST)
    return [
        *(_time(row, loads[row.rank], name="slowest") for row in ordered[:_MOST]),
        *(_time(row, loads[row.rank], name="typical") for row in typical),
        *(_over_all(found, name, of_all) for name, of_all in ranks.SUMMARY.items()),
    ]


def _time(
    row: RankRow,
    loading: LoadingTime,
    in_collectives: tuple[int, int] = _NOT_KNOWN,
    *,
    name: str = "",
) -> RankTimes:
    names = ("operator_ns", "running_ns", "waiting_ns")
    of_loading = [getattr(loading, each) for each in names]
    parts = zip((getattr(row, each) for each in names), of_loading, strict=True)
    return RankTimes(
        name=name,
        rank=row.rank,
        parts_ns=[*(max(0, whole - part) for whole, part in parts), sum(of_loading)],
        working_ns=ranks.working_ns(row),
        operator_ns=row.operator_ns,
        running_ns=row.running_ns,
        waiting_ns=row.waiting_ns,
        loading_ns=sum(of_loading),
        elapsed_ns=row.wall_ns,
        collective_ns=in_collectives[0],
        waited_ns=in_collectives[1],
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
        working_ns=value(ranks.working_ns),
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
