"""How one metric spreads over ranks at each path: sums, squares, extremes and their ranks.

Values are inclusive. Sums are exact, so the order of joining does not matter. If several ranks have an
extreme value, the rank with the lowest number is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from deepcontext.profiler.model.grouping import Groups
from deepcontext.profiler.model.job.squares import Squares

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Array = npt.NDArray[Any]

_NO_RANK: Final = np.iinfo(np.int32).max


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """A row for each path at which a rank has a value other than 0; columns of shape (rows,).

    Attributes:
        node: position of the path, or node of the tree, ascending, uint32.
        ranks: number of ranks with a value, uint32.
        total: sum of the values, int64.
        squares_high: upper 64 bits of the sum of squares, uint64.
        squares_low: lower 64 bits.
        least: least value of these ranks, int64.
        least_rank: a rank with that value, int32.
        most: largest value, int64.
        most_rank: a rank with that value, int32.
    """

    node: npt.NDArray[np.uint32]
    ranks: npt.NDArray[np.uint32]
    total: npt.NDArray[np.int64]
    squares_high: npt.NDArray[np.uint64]
    squares_low: npt.NDArray[np.uint64]
    least: npt.NDArray[np.int64]
    least_rank: npt.NDArray[np.int32]
    most: npt.NDArray[np.int64]
    most_rank: npt.NDArray[np.int32]

    @classmethod
    def of(cls, values: npt.NDArray[np.int64], rank: int) -> Spread:
        """Return the spread of one rank.

        Args:
            values: inclusive value at each position.
            rank: number of the rank.
        """
        node = np.flatnonzero(values)
        value = values[node]
        squares = Squares.of(value)
        whose = np.full(len(node), rank, np.int32)
        return cls(
            node=node.astype(np.uint32),
            ranks=np.ones(len(node), np.uint32),
            total=value,
            squares_high=squares.high,
            squares_low=squares.low,
            least=value,
            least_rank=whose,
            most=value,
            most_rank=whose,
        )

    def columns(self) -> dict[str, Array]:
        """Return the columns by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def at(self, position: Array) -> Spread:
        """Return the rows at other positions, ascending: `position[node]`; negative ones are left out."""
        node = position[self.node]
        kept = np.flatnonzero(node >= 0)
        kept = kept[np.argsort(node[kept], kind="stable")]
        columns = {name: column[kept] for name, column in self.columns().items()}
        return Spread(**{**columns, "node": node[kept].astype(np.uint32)})

    def mean(self, ranks: int) -> npt.NDArray[np.float64]:
        """Return the mean over all `ranks` of the job; a rank without the path counts as 0."""
        return self.total / ranks

    def deviation(self, ranks: int) -> npt.NDArray[np.float64]:
        """Return the standard deviation over all `ranks` of the job."""
        mean = self.mean(ranks)
        squares = Squares(self.squares_high, self.squares_low).as_float()
        result: npt.NDArray[np.float64] = np.sqrt(np.maximum(squares / ranks - mean * mean, 0))
        return result


def join_spreads(found: Sequence[Spread]) -> Spread:
    """Return the spread over all ranks; all positions refer to one table."""
    column = {
        each.name: np.concatenate([getattr(spread, each.name) for spread in found])
        for each in fields(Spread)
    }
    groups = Groups.of(column["node"])
    squares = Squares(column["squares_high"], column["squares_low"]).sums(groups)
    least, most = groups.least(column["least"]), groups.most(column["most"])
    return Spread(
        node=groups.key,
        ranks=groups.sums(column["ranks"]),
        total=groups.sums(column["total"]),
        squares_high=squares.high,
        squares_low=squares.low,
        least=least,
        least_rank=_whose(groups, column["least_rank"], column["least"], least),
        most=most,
        most_rank=_whose(groups, column["most_rank"], column["most"], most),
    )


def _whose(groups: Groups, ranks: Array, values: Array, extreme: Array) -> npt.NDArray[np.int32]:
    """Return for each group the lowest rank that has the extreme value."""
    has = values == extreme[groups.of_row()]
    return np.asarray(groups.least(np.where(has, ranks, _NO_RANK)), np.int32)
