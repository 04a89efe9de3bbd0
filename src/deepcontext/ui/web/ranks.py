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
from deepcontext.ui.format import format_count
from deepcontext.ui.sections import ranks as tables
from deepcontext.ui.sections.view import View
from deepcontext.ui.web.answers import LateRank, RankBins, RankName, RanksAnswer, RankTimes
from deepcontext.ui.web.container import pack
from deepcontext.ui.web.json_text import to_json
from deepcontext.ui.web.tables import table_answer

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from deepcontext.profiler.model.job.rank_row import RankRow
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.basis import Basis
    from deepcontext.profiler.summaries.late_ranks import RankDelays
    from deepcontext.profiler.summaries.ranks import LoadingTime
    from deepcontext.ui.sections.table import Table

    Columns = dict[str, npt.NDArray[Any]]

_PARTS: Final = ("in operators", "running between operators", "waiting", "loading data")
_MOST: Final = 10
_MOST_LINES: Final = 10
# More rows in a picture keep a browser busy for seconds.
_MOST_LATE: Final = 64
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
    basis = basis_of(profile)
    profile = basis.profile
    found, rows = late_ranks.by_lateness(profile), ranks.by_rank(profile)
    bins = ranks.histogram(rows)
    late = found.rows if found and len(rows) > 1 else ()
    view = View(profile, default_metric(profile), _ALL)
    times = tables.times(view, _MOST if bins else len(rows))
    of_late = table_answer(
        tables.late(replace(view, limit=_MOST_LATE)), _ONE if len(rows) == 1 else _NO_COLLECTIVES
    )
    exchanges = table_answer(tables.exchanges(view), of_late.note)
    if len(late) > _MOST_LATE:
        shown = f"{_MOST_LATE} of {format_count(len(late))} ranks are shown, the latest"
        of_late = replace(of_late, note=f"{of_late.note} {shown}.")
    return RanksAnswer(
        fact=rank_texts.ranks_fact(profile),
        note=rank_texts.RANKS,
        parts=list(_PARTS),
        names=[RankName(row.rank, row.hostname, row.name) for row in rows],
        rows=_drawn(profile, times, late),
        times=table_answer(replace(times, title="Times of ranks", columns=times.columns[2:])),
        bins=RankBins(bins.least_ns, bins.most_ns, list(bins.bins)) if bins else None,
        collectives_note="" if late or not collectives.by_rank(profile) else rank_texts.COMPILED,
        late_over_time=_over_time(late),
        late=of_late,
        exchanges=exchanges,
        lines=table_answer(tables.uneven_lines(replace(view, limit=_MOST_LINES))),
        metrics=list(ranks.metrics_by_rank(profile)),
        step=STEP,
        of_ranks=1 if basis.steps else basis.ranks,
    )


def _over_time(late: Sequence[RankDelays]) -> list[LateRank]:
    """Return when the latest ranks were late, by rank."""
    latest = sorted(late, key=lambda row: -row.caused_ns)[:_MOST_LATE]
    latest.sort(key=lambda row: row.rank)
    return [LateRank(row.rank, list(row.over_time_ns)) for row in latest]


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


def _drawn(profile: Profile, times: Table, late: Sequence[RankDelays]) -> list[RankTimes]:
    found, loading = ranks.by_rank(profile), ranks.loading_by_rank(profile)
    parts = {row.rank: _parts(row, part) for row, part in zip(found, loading, strict=True)}
    is_each = len(times.rows) == len(found)
    in_collectives = {
        row.rank: (row.total_ns, row.waiting_ns)
        for row in (late or collectives.by_rank(profile))
        if is_each
    }
    numbers = [(row["which"], _UNKNOWN if row["rank"] == "" else row["rank"]) for row in times.rows]
    return [
        RankTimes(name, rank, parts.get(rank, []), *in_collectives.get(rank, _NOT_KNOWN))
        for name, rank in numbers
    ]


def _parts(row: RankRow, loading: LoadingTime) -> list[int]:
    names = ("operator_ns", "running_ns", "waiting_ns")
    of_loading = [getattr(loading, each) for each in names]
    rest = (getattr(row, name) - part for name, part in zip(names, of_loading, strict=True))
    return [*(max(0, part) for part in rest), sum(of_loading)]
