"""Rows with equal keys, and sums and extremes over each group of rows. Knows nothing of profiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Groups of rows by key.

    Attributes:
        key: each distinct key, ascending, shape (groups,).
        order: row numbers, by key, shape (rows,), intp.
        start: index in `order` of each group's first row, shape (groups,), intp.
    """

    key: Array
    order: npt.NDArray[np.intp]
    start: npt.NDArray[np.intp]

    @classmethod
    def of(cls, keys: Array) -> Groups:
        """Return the groups of rows with these keys, shape (rows,)."""
        order = np.argsort(keys, kind="stable")
        ascending = keys[order]
        is_first = np.ones(len(keys), np.bool_)
        is_first[1:] = ascending[1:] != ascending[:-1]
        start = np.flatnonzero(is_first)
        return cls(ascending[start], order, start)

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
