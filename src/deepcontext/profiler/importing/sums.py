"""Sums of a metric by node and window: events are added up as they come, so that they need not be kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

_WINDOW_BITS: Final = 16


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums, one row for each node and window with events, in ascending order; arrays of shape (rows,).

    Attributes:
        key: node and window of each row.
        count: number of events.
        total: their sum.
        minimum: the smallest.
        maximum: the largest.
        m2: sum of squared distances from their mean, float64.
    """

    key: Ints
    count: Ints
    total: Ints
    minimum: Ints
    maximum: Ints
    m2: npt.NDArray[np.float64]

    @classmethod
    def of(cls, node: Ints, value: Ints, window: Ints) -> Self:
        """Return the sums of events, each with its node, value and window."""
        ones = np.ones(len(node), np.int64)
        key = node << _WINDOW_BITS | window
        return cls._grouped(key, ones, value, value, value, np.zeros(len(node)))

    @classmethod
    def together(cls, parts: Sequence[Self]) -> Self:
        """Return the sums of several parts."""
        columns = (
            np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__
        )
        return cls._grouped(*columns)

    @classmethod
    def _grouped(
        cls,
        key: Ints,
        count: Ints,
        total: Ints,
        minimum: Ints,
        maximum: Ints,
        m2: npt.NDArray[np.float64],
    ) -> Self:
        """Add up rows with the same key, by the formula of Chan et al. for their squares."""
        order = np.argsort(key, kind="stable")
        key = key[order]
        first = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1]))) if len(key) else order
        counts, totals = np.add.reduceat(count[order], first), np.add.reduceat(total[order], first)
        size = np.diff(np.append(first, len(key)))
        mean = np.repeat(totals / counts, size)
        distance = total[order] / count[order] - mean
        squares = m2[order] + count[order] * distance**2
        return cls(
            key[first],
            counts,
            totals,
            np.minimum.reduceat(minimum[order], first),
            np.maximum.reduceat(maximum[order], first),
            np.add.reduceat(squares, first),
        )

    @property
    def node(self) -> Ints:
        """Node of each row."""
        return self.key >> _WINDOW_BITS

    @property
    def window(self) -> Ints:
        """Window of each row."""
        return self.key & ((1 << _WINDOW_BITS) - 1)

    def by_node(self, place: Ints) -> Self:
        """Return the sums over all windows, by new ids of the nodes."""
        key = place[self.node] << _WINDOW_BITS
        return self._grouped(key, self.count, self.total, self.minimum, self.maximum, self.m2)
