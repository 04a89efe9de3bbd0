"""Combine metric values over groups of nodes.

Does not decide what a group is (`query_table.py`, `summaries/groups.py`). A group is a number from 0 up;
`NO_GROUP` marks nodes without a group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from deepcontext.profiler.model.metric_rows import MetricRows
    from deepcontext.profiler.model.tree import Tree

    Array = npt.NDArray[Any]
    Ints = npt.NDArray[np.int64]

NO_GROUP: Final = -1
_EXACT: Final = 2.0**53


@dataclass(frozen=True, slots=True)
class Spread:
    """How the single measurements of a metric are distributed.

    Attributes:
        count: number of measurements (calls, steps).
        total: their sum in the metric's unit. A call nested in a call of the same operator counts
            in both, so the total may exceed the group's inclusive value.
        mean: `total / count`.
        sd: sample standard deviation, None for a single measurement or where not recorded.
        minimum: smallest, or None when not recorded.
        maximum: largest, or None when not recorded.
    """

    count: int
    total: int
    mean: float
    sd: float | None
    minimum: int | None
    maximum: int | None


@dataclass(frozen=True, slots=True)
class Spreads:
    """`Spread` of every group, as columns of shape (groups,)."""

    count: Ints
    total: Ints
    m2: npt.NDArray[np.float64] | None
    minimum: Ints | None
    maximum: Ints | None

    @classmethod
    def of_rows(cls, rows: MetricRows, group: Ints, count: int) -> Spreads:
        """Combine the rows of each group.

        Args:
            rows: what to combine.
            group: group of each row or `NO_GROUP`, shape (rows,).
            count: number of groups.
        """
        member = group != NO_GROUP
        group = group[member]
        calls = rows.count[member].astype(np.int64)
        total = rows.total[member].astype(np.int64)
        all_calls, all_total = sums(group, calls, count), sums(group, total, count)
        m2 = minimum = maximum = None
        if rows.m2 is not None:
            # Source: Chan, Golub, LeVeque (1979), "Updating formulae and a pairwise algorithm for
            # computing sample variances": variance within the rows plus between their means.
            mean = total / np.maximum(calls, 1)
            group_mean = all_total / np.maximum(all_calls, 1)
            between = calls * np.square(mean - group_mean[group])
            # bincount of no rows returns integers, hence the conversion.
            m2 = np.bincount(group, rows.m2[member] + between, count).astype(np.float64)
        if rows.minimum is not None:
            minimum = np.full(count, np.iinfo(np.int64).max)
            np.minimum.at(minimum, group, rows.minimum[member])
        if rows.maximum is not None:
            maximum = np.full(count, np.iinfo(np.int64).min)
            np.maximum.at(maximum, group, rows.maximum[member])
        return cls(all_calls, all_total, m2, minimum, maximum)

    def spread(self, index: int) -> Spread | None:
        """Return the spread of one group, None when nothing was measured."""
        count = int(self.count[index])
        if count <= 0:
            return None
        sd = None
        if self.m2 is not None and count > 1:
            sd = float(np.sqrt(self.m2[index] / (count - 1)))
        total = int(self.total[index])
        return Spread(
            count=count,
            total=total,
            mean=total / count,
            sd=sd,
            minimum=None if self.minimum is None else int(self.minimum[index]),
            maximum=None if self.maximum is None else int(self.maximum[index]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Rows with equal keys, and sums and extremes over the rows of each group.

    Attributes:
        keys: for each column of keys, the distinct ones, ascending by the first column, then by the
            next; shape (groups,) each.
        order: row numbers, by group, shape (rows,), intp.
        start: index in `order` of each group's first row, shape (groups,), intp.
    """

    keys: tuple[Array, ...]
    order: npt.NDArray[np.intp]
    start: npt.NDArray[np.intp]

    @classmethod
    def of(cls, *columns: Array, largest: Array | None = None) -> Groups:
        """Return the groups of rows that are equal in all columns of keys.

        Args:
            columns: keys, shape (rows,) each.
            largest: puts the rows of a group in descending order of these values, shape (rows,), signed;
                equal rows, and rows without it, stay in their order.
        """
        if len(columns) == 1 and largest is None:
            order = np.argsort(columns[0], kind="stable")
        else:
            by = () if largest is None else (-largest,)
            order = np.lexsort((*by, *reversed(columns)))
        is_first = np.ones(len(order), np.bool_)
        ascending = [column[order] for column in columns]
        is_first[1:] = np.any([each[1:] != each[:-1] for each in ascending], axis=0)
        start = np.flatnonzero(is_first)
        return cls(tuple(each[start] for each in ascending), order, start)

    @property
    def key(self) -> Array:
        """The first column of keys."""
        return self.keys[0]

    def __iter__(self) -> Iterator[npt.NDArray[np.intp]]:
        """Yield the rows of each group."""
        return iter(np.split(self.order, self.start[1:]) if len(self) else ())

    def __len__(self) -> int:
        return len(self.key)

    def of_row(self) -> npt.NDArray[np.intp]:
        """Return the group of each row, shape (rows,), intp."""
        group = np.empty(len(self.order), np.intp)
        sizes = np.diff(self.start, append=len(self.order))
        group[self.order] = np.repeat(np.arange(len(self.start)), sizes)
        return group

    def first(self, values: Array) -> Array:
        """Return the value of each group's first row, shape (groups,)."""
        return values[self.order[self.start]]

    def sums(self, values: Array) -> Array:
        """Return the sum of each group in the type of `values`, shape (groups,)."""
        # The type is named, because numpy widens small unsigned numbers differently by version.
        return np.add.reduceat(values[self.order], self.start, dtype=values.dtype)

    def least(self, values: Array) -> Array:
        """Return the least value of each group, shape (groups,)."""
        return np.minimum.reduceat(values[self.order], self.start)

    def most(self, values: Array) -> Array:
        """Return the largest value of each group, shape (groups,)."""
        return np.maximum.reduceat(values[self.order], self.start)

    def mixed(self, values: Array) -> int | None:
        """Return the first group whose rows have different values, None if there is none."""
        ascending = values[self.order]
        differs = ascending[1:] != ascending[:-1]
        differs[self.start[1:] - 1] = False  # neighbours of two groups may differ
        if not differs.any():
            return None
        return int(np.searchsorted(self.start, np.argmax(differs), side="right")) - 1


def sums(group: npt.NDArray[Any], values: Ints, count: int) -> Ints:
    """Return the sum of `values` over each of `count` groups, exact, shape (count,)."""
    # bincount adds in float64, which is several times as fast, but exact up to 2**53 (104 days in ns).
    if np.abs(values).sum(dtype=np.float64) < _EXACT:
        return np.bincount(group, values, count).astype(np.int64)
    result = np.zeros(count, np.int64)
    np.add.at(result, group, values)
    return result


def topmost(tree: Tree, group: Ints) -> Ints:
    """Return the nodes of any group that have no ancestor in the same group, in ascending order.

    With the nodes of a group in pre-order, a node lies under an earlier node exactly when it comes
    before the furthest subtree end so far. Adding `group * (nodes + 1)` separates the groups, so
    one running maximum serves all groups.

    Args:
        tree: the tree.
        group: group of each node or `NO_GROUP`, shape (nodes,).
    """
    members = np.flatnonzero(group != NO_GROUP)
    # NumPy sorts integers of 16 bits by their digits, in a fraction of the time.
    is_small = len(members) > 0 and int(group.max()) < 1 << 16
    key = group[members].astype(np.uint16) if is_small else group[members]
    members = members[np.argsort(key, kind="stable")]
    base = group[members] * (len(group) + 1)
    furthest = np.maximum.accumulate(base + tree.subtree_end[members])
    nested = np.zeros(len(members), np.bool_)
    nested[1:] = (base + members)[1:] < furthest[:-1]
    is_topmost = np.zeros(len(group), np.bool_)
    is_topmost[members[~nested]] = True
    return np.flatnonzero(is_topmost)
