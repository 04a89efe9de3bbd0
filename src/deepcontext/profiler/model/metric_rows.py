"""The values of one metric, as columns: one row for each node that has a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from typing import Self

    import numpy.typing as npt

    from deepcontext.profiler.format.metric import MetricDescriptor


@dataclass(frozen=True, slots=True)
class MetricRows:
    """Sparse rows of one metric: row i belongs to node `node[i]`.

    Attributes:
        descriptor: what is measured.
        node: node ids in ascending order, each once, shape (rows,), uint32.
        count: number of events, shape (rows,), uint64.
        total: sum over the events in the metric's unit, shape (rows,), int64.
        minimum: smallest event, shape (rows,), int64, or None where not recorded.
        maximum: largest event, shape (rows,), int64, or None where not recorded.
        m2: sum of squared distances from the mean, shape (rows,), float64, or None.
    """

    descriptor: MetricDescriptor
    node: npt.NDArray[np.uint32]
    count: npt.NDArray[np.uint64]
    total: npt.NDArray[np.int64]
    minimum: npt.NDArray[np.int64] | None = None
    maximum: npt.NDArray[np.int64] | None = None
    m2: npt.NDArray[np.float64] | None = None

    @classmethod
    def of_derived(
        cls,
        descriptor: MetricDescriptor,
        node: npt.NDArray[np.int64],
        count: npt.NDArray[np.int64],
        total: npt.NDArray[np.float64],
    ) -> Self:
        """Return the rows of a computed metric; none where their sum does not fit 64 bits."""
        keep = (total > 0) & bool(total.sum() < np.iinfo(np.int64).max)
        return cls(
            descriptor,
            node[keep].astype(np.uint32),
            count[keep].astype(np.uint64),
            total[keep].astype(np.int64),
        )

    def row(self, index: int) -> dict[str, int | float]:
        """Return one row by column name; columns that were not recorded are left out."""
        values: dict[str, int | float] = {
            "count": int(self.count[index]),
            "total": int(self.total[index]),
        }
        for name, column in (("minimum", self.minimum), ("maximum", self.maximum)):
            if column is not None:
                values[name] = int(column[index])
        if self.m2 is not None:
            values["m2"] = float(self.m2[index])
        return values
