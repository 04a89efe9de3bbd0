"""Exact sums of squares, as two columns of 64 bits.

Sums in float64 would depend on the order of joining; two merges of one job would then differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.model.grouping import Groups

    Words = npt.NDArray[np.uint64]

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, slots=True, eq=False)
class Squares:
    """Sums of squares, `high` * 2**64 + `low`, both of shape (rows,), uint64."""

    high: Words
    low: Words

    @classmethod
    def of(cls, values: npt.NDArray[np.int64]) -> Squares:
        """Return the square of each value."""
        size = np.abs(values).astype(np.uint64)
        upper, lower = size >> _HALF, size & _LOW
        middle = upper * lower * np.uint64(2)  # below 2**64, because |value| is at most 2**63
        low = lower * lower
        carried = low + (middle << _HALF)
        high = upper * upper + (middle >> _HALF) + (carried < low)
        return cls(high.astype(np.uint64), carried)

    def __getitem__(self, rows: npt.NDArray[Any]) -> Squares:
        """Return the selected rows."""
        return Squares(self.high[rows], self.low[rows])

    def sums(self, groups: Groups) -> Squares:
        """Return the sum of each group."""
        # Sums of halves cannot overflow: a group has fewer than 2**32 rows.
        lower, upper = groups.sums(self.low & _LOW), groups.sums(self.low >> _HALF)
        upper += lower >> _HALF
        high = groups.sums(self.high) + (upper >> _HALF)
        return Squares(high, (upper << _HALF) | (lower & _LOW))

    def as_float(self) -> npt.NDArray[np.float64]:
        """Return the sums as floating-point numbers, shape (rows,)."""
        return self.high.astype(np.float64) * 2.0**64 + self.low.astype(np.float64)
