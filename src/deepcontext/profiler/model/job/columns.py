"""The values of every rank at chosen paths, as 16-bit logarithms.

Does not choose the paths (`largest.py`). Relative error of a value: at most 0.04 %.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    Codes = npt.NDArray[np.uint16]
    Keys = npt.NDArray[np.uint64]

# 0 is no value; 65535 is a value that was not kept; code c between them is exp((c - 1) * STEP).
UNKNOWN: Final = 0xFFFF
STEP: Final = 63 * math.log(2) / (UNKNOWN - 2)


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Values of ranks at paths.

    Attributes:
        key: keys of the paths, ascending, shape (paths,), uint64.
        rank: numbers of the ranks, ascending, shape (ranks,), int32.
        is_whole: whether `key` has every path of the rank: at other paths its value is 0, not
            unknown; shape (ranks,), bool.
        codes: by metric the values, coded, shape (paths, ranks), uint16.
    """

    key: Keys
    rank: npt.NDArray[np.int32]
    is_whole: npt.NDArray[np.bool_]
    codes: Mapping[str, Codes]

    def only(self, key: Keys) -> Columns:
        """Return the columns at some paths, keys ascending; paths that are not held are ignored."""
        held = np.isin(self.key, key, assume_unique=True)
        if held.all():
            return self
        return Columns(
            self.key[held],
            self.rank,
            np.zeros(len(self.rank), np.bool_),
            {name: codes[held] for name, codes in self.codes.items()},
        )


def encode(values: npt.NDArray[np.int64]) -> Codes:
    """Return the codes of values; values below 1 become 0."""
    positive = np.maximum(values, 1).astype(np.float64)
    codes = 1 + np.rint(np.log(positive) / STEP)
    return np.where(values > 0, np.minimum(codes, UNKNOWN - 1), 0).astype(np.uint16)


def decode(codes: Codes) -> npt.NDArray[np.float64]:
    """Return the values of codes; NaN where unknown."""
    values = np.exp((codes.astype(np.float64) - 1) * STEP)
    values[codes == 0] = 0
    values[codes == UNKNOWN] = np.nan
    return values


def join_columns(found: Sequence[Columns]) -> Columns:
    """Return the columns of all ranks, at every path that any of them has."""
    key = np.unique(np.concatenate([each.key for each in found]))
    rank = np.concatenate([each.rank for each in found])
    is_whole = np.concatenate([each.is_whole for each in found])
    order = np.argsort(rank, kind="stable")
    names = sorted({name for each in found for name in each.codes})
    fill = np.where(is_whole, 0, UNKNOWN).astype(np.uint16)
    codes = {name: np.tile(fill, (len(key), 1)) for name in names}
    start = 0
    for each in found:
        row, end = np.searchsorted(key, each.key), start + len(each.rank)
        for name in names:
            # A metric that the ranks did not measure has no value at their paths.
            codes[name][row, start:end] = each.codes.get(name, 0)
        start = end
    if (rank[1:] > rank[:-1]).all():  # as in most joins; a copy of thousands of ranks takes 0.2 GB
        return Columns(key, rank, is_whole, codes)
    return Columns(
        key, rank[order], is_whole[order], {name: codes[name][:, order] for name in names}
    )
