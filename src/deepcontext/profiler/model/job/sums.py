"""Rows of one metric added up over ranks.

Does not know the tree: `MetricRows.node` is a position in the table of joined paths.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from deepcontext.errors import UserError
from deepcontext.profiler.format.metric import Aggregation
from deepcontext.profiler.model.grouping import Groups
from deepcontext.profiler.model.metric_rows import MetricRows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    Array = npt.NDArray[Any]


def moved(rows: MetricRows, position: Array) -> MetricRows:
    """Return the rows at other positions: `position[node]`. The rows need not ascend any more."""
    return dataclasses.replace(rows, node=position[rows.node].astype(np.uint32))


def sum_rows(found: Sequence[MetricRows]) -> MetricRows:
    """Return one row for each position, ascending, with counts and totals added and extremes combined.

    Raises:
        UserError: the metric has another unit or aggregation in one of them.
    """
    descriptor = found[0].descriptor
    for rows in found[1:]:
        _check_same(found[0], rows)
    groups = Groups.of(np.concatenate([rows.node for rows in found]))
    count = np.concatenate([rows.count for rows in found])
    total = np.concatenate([rows.total for rows in found])
    minimum = _column(found, lambda rows: rows.minimum)
    maximum = _column(found, lambda rows: rows.maximum)
    m2 = _column(found, lambda rows: rows.m2)
    is_maximum = descriptor.aggregation is Aggregation.MAX and maximum is None
    return MetricRows(
        descriptor,
        node=groups.key,
        count=groups.sums(count),
        total=groups.most(total) if is_maximum else groups.sums(total),
        minimum=None if minimum is None else groups.least(minimum),
        maximum=None if maximum is None else groups.most(maximum),
        m2=None if m2 is None else _squares_about_mean(groups, count, total, m2),
    )


def _check_same(first: MetricRows, second: MetricRows) -> None:
    here, there = first.descriptor, second.descriptor
    if (here.unit, here.aggregation) != (there.unit, there.aggregation):
        raise UserError(
            f"metric '{here.name}' is a {here.aggregation.name.lower()} in {here.unit} in one "
            f"profile, a {there.aggregation.name.lower()} in {there.unit} in another; profile all "
            "ranks with one version of deepcontext"
        )


def _column(found: Sequence[MetricRows], column: Callable[[MetricRows], Array | None]) -> Any:
    """Return a column of all rows, None where one of them lacks the column."""
    columns = [values for values in map(column, found) if values is not None]
    return np.concatenate(columns) if len(columns) == len(found) else None


def _squares_about_mean(groups: Groups, count: Array, total: Array, m2: Array) -> Array:
    """Return the sum of squared distances from each group's mean.

    Source: Chan, Golub, LeVeque, "Updating formulae", 1979, for any number of parts.
    """
    mean = total / np.maximum(count, 1)
    all_counts = np.maximum(groups.sums(count), 1)
    distance = mean - (groups.sums(total) / all_counts)[groups.of_row()]
    return groups.sums(m2 + count * distance * distance)
