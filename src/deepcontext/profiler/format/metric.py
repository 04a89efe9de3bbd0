"""Metrics: what is measured at the nodes of a tree, and how values combine.

Does not know where values come from. Invariant: what a `SUM` metric stores is exclusive to the
node; inclusive values are computed when read (`Profile.inclusive`).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Aggregation(enum.IntEnum):
    """How values of one metric combine over events and over a subtree."""

    SUM = 1
    MAX = 2
    PROPERTY = 3  # describes the node itself; never summed over a subtree


@dataclass(frozen=True, slots=True)
class MetricDescriptor:
    """Name and meaning of a metric; the unit ends the name (`_ns`, `_bytes`, `_count`).

    Attributes:
        name: for example ``cpu_time_ns``.
        unit: ``ns``, ``bytes``, ``count`` or ``flop``.
        aggregation: how values combine.
        description: one sentence a person reads.
    """

    name: str
    unit: str
    aggregation: Aggregation
    description: str


CPU_TIME_NS = MetricDescriptor(
    "cpu_time_ns",
    "ns",
    Aggregation.SUM,
    "elapsed host time inside the operator or scope, without nested operators and scopes",
)
CALL_DURATION_NS = MetricDescriptor(
    "call_duration_ns",
    "ns",
    Aggregation.PROPERTY,
    "elapsed host time per call of the operator or scope, nested ones included",
)
STEP_TIME_NS = MetricDescriptor(
    "step_time_ns", "ns", Aggregation.PROPERTY, "elapsed time between two step() marks"
)
SAMPLED_CPU_TIME_NS = MetricDescriptor(
    "sampled_cpu_time_ns",
    "ns",
    Aggregation.SUM,
    "processor time outside operators, in Python and native code, sampled",
)
SAMPLED_WAIT_TIME_NS = MetricDescriptor(
    "sampled_wait_time_ns",
    "ns",
    Aggregation.SUM,
    "elapsed time outside operators in which the thread did not run, sampled",
)
SAMPLED_GIL_TIME_NS = MetricDescriptor(
    "sampled_gil_time_ns",
    "ns",
    Aggregation.SUM,
    "part of sampled_cpu_time_ns in which the thread held the GIL",
)
SAMPLED_READY_TIME_NS = MetricDescriptor(
    "sampled_ready_time_ns",
    "ns",
    Aggregation.SUM,
    "part of sampled_wait_time_ns in which the thread could run and had no processor",
)
SAMPLED_GIL_WAIT_TIME_NS = MetricDescriptor(
    "sampled_gil_wait_time_ns",
    "ns",
    Aggregation.SUM,
    "part of sampled_wait_time_ns in which the thread waited for the GIL",
)
# What the program's metrics are called and mean; collectors add theirs to a profile by descriptor.
KNOWN_METRICS: tuple[MetricDescriptor, ...] = (CPU_TIME_NS, CALL_DURATION_NS, STEP_TIME_NS)


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

    def row(self, place: int) -> dict[str, int | float]:
        """Return one row by column name; columns that were not recorded are left out."""
        values: dict[str, int | float] = {
            "count": int(self.count[place]),
            "total": int(self.total[place]),
        }
        for name, column in (("minimum", self.minimum), ("maximum", self.maximum)):
            if column is not None:
                values[name] = int(column[place])
        if self.m2 is not None:
            values["m2"] = float(self.m2[place])
        return values
