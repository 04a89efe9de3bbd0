"""Keep a partial result bounded: fold rare cheap paths into their parent, keep values of few paths.

Not associative, so a fold over many profiles does this at fixed places (`fold.py`). Invariant: the
sum of each metric stays the same.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from deepcontext.profiler.format.metric import Aggregation
from deepcontext.profiler.model.job.part import Part, Paths
from deepcontext.profiler.model.job.sums import moved, sum_rows

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.model.metric_rows import MetricRows

    Mask = npt.NDArray[np.bool_]

RARE_SHARE: Final = 0.01
CHEAP_SHARE: Final = 1e-6
_MOST_NOTES: Final = 200
_MANY_RANKS: Final = 4_000
# Of few ranks together, so that a small job keeps the values of nearly every path.
_MOST_VALUES: Final = 64_000


def most_columns(ranks: int) -> int:
    """Return at how many paths the values of all ranks are kept."""
    return max(1_000, _MOST_VALUES // ranks) if ranks <= _MANY_RANKS else 300


def bounded(part: Part, *, spare: float = 1.5) -> Part:
    """Return the part without rare cheap paths, with the values of each rank at its largest paths.

    Args:
        part: a partial result.
        spare: paths with values, as a multiple of `most_columns`: paths that are small in one part
            may be large in the job.
    """
    folded = fold_rare(part)
    most = int(spare * most_columns(len(part.rows)))
    return dataclasses.replace(
        folded,
        columns=folded.columns.only(largest_paths(folded, most)),
        trust=folded.trust.bounded(_MOST_NOTES),
    )


def shares(part: Part) -> npt.NDArray[np.float64]:
    """Return each path's largest share of any `SUM` metric, 0 to 1, shape (paths,)."""
    result = np.zeros(len(part.paths))
    root = part.paths.parent == 0
    for spread in part.spreads.values():
        totals = np.zeros(len(part.paths), np.int64)
        totals[spread.node] = spread.total
        whole = int(totals[root].sum())
        if whole > 0:
            np.maximum(result, totals / whole, out=result)
    return result


def largest_paths(part: Part, most: int) -> npt.NDArray[np.uint64]:
    """Return the keys of the `most` paths with the largest shares, ascending."""
    share = shares(part)
    order = np.lexsort((part.paths.key, -share))
    order = order[share[order] > 0][:most]
    return np.sort(part.paths.key[order])


def fold_rare(part: Part) -> Part:
    """Fold paths of under 1 % of the ranks and 1e-6 of each metric into their nearest kept parent.

    Counts and totals of `SUM` metrics move to the parent, and so do extremes of `MAX` metrics. Rows of
    `PROPERTY` metrics describe only their own path and are left out.
    """
    paths = part.paths
    above = _above(paths)
    kept = (paths.seen >= RARE_SHARE * len(part.rows)) | (shares(part) > CHEAP_SHARE)
    kept = _with_ancestors(kept, above)
    if kept.all():
        return part
    target = np.where(kept, np.arange(len(paths)), above)
    while not kept[target].all():
        target = target[target]
    number = np.cumsum(kept) - 1
    table = Paths(
        paths.key[kept], paths.parent[kept], paths.frame[kept], paths.phase[kept], paths.seen[kept]
    )
    used = set(np.unique(table.frame).tolist())
    columns = part.columns.only(table.key)
    return dataclasses.replace(
        part,
        paths=table,
        frames={key: frame for key, frame in part.frames.items() if key in used},
        sums={
            name: _folded(rows, kept, number[target], number) for name, rows in part.sums.items()
        },
        spreads={
            name: spread.at(np.where(kept, number, -1)) for name, spread in part.spreads.items()
        },
        columns=dataclasses.replace(columns, is_whole=np.zeros_like(columns.is_whole)),
    )


def _above(paths: Paths) -> npt.NDArray[np.intp]:
    """Return the position of each path's parent; the root's is its own."""
    above = np.searchsorted(paths.key, paths.parent)
    is_root = paths.parent == 0
    above[is_root] = np.flatnonzero(is_root)
    return above


def _with_ancestors(kept: Mask, above: npt.NDArray[np.intp]) -> Mask:
    """Return the paths in `kept`, the root and every path above them."""
    result: Mask = kept | (above == np.arange(len(above)))
    new = np.flatnonzero(result)
    while len(new):
        parents = np.unique(above[new])
        new = parents[~result[parents]]
        result[new] = True
    return result


def _folded(
    rows: MetricRows, kept: Mask, to: npt.NDArray[np.intp], number: npt.NDArray[np.intp]
) -> MetricRows:
    if rows.descriptor.aggregation is not Aggregation.PROPERTY:
        return sum_rows([moved(rows, to)])
    own = np.flatnonzero(kept[rows.node])

    def column(values: npt.NDArray[Any] | None) -> Any:
        return None if values is None else values[own]

    return dataclasses.replace(
        rows,
        node=number[rows.node[own]].astype(np.uint32),
        count=rows.count[own],
        total=rows.total[own],
        minimum=column(rows.minimum),
        maximum=column(rows.maximum),
        m2=column(rows.m2),
    )
