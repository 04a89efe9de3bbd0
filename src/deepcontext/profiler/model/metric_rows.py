"""The values of one metric, as columns: one row for each node that has a value.

Columns that few questions need may be decoded at their first use.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from deepcontext.profiler.format.metric import Aggregation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
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
    _deferred: Mapping[str, Callable[[], npt.NDArray[Any]]] = field(
        init=False, repr=False, default_factory=dict
    )

    @classmethod
    def of_deferred(
        cls, present: Mapping[str, object], deferred: Mapping[str, Callable[[], npt.NDArray[Any]]]
    ) -> Self:
        """Return rows of which some columns are decoded at their first use.

        Args:
            present: descriptor and columns that are known already, by attribute.
            deferred: decodes a column, by attribute; optional columns in neither are None.
        """
        rows = object.__new__(cls)
        for name in {each.name for each in fields(cls)} - deferred.keys():
            value = deferred if name == "_deferred" else present.get(name)
            object.__setattr__(rows, name, value)
        return rows

    if not TYPE_CHECKING:  # checkers would accept any attribute

        def __getattr__(self, name: str) -> npt.NDArray[Any]:
            # Reached for a slot without a value only.
            deferred = object.__getattribute__(self, "_deferred")
            if name not in deferred:
                raise AttributeError(name)
            column = deferred[name]()
            object.__setattr__(self, name, column)
            return column

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

    def values(self) -> npt.NDArray[np.int64]:
        """Return the exclusive value of each row: the sum, of a `MAX` metric the largest event."""
        if self.descriptor.aggregation is Aggregation.MAX and self.maximum is not None:
            return self.maximum
        return self.total

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
