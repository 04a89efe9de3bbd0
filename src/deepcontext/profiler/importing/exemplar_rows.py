"""Steps that are kept whole, as the profile file holds them, made from spans with times.

As `recording/exemplars.py`, which has them from the native core.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deepcontext.profiler.format import schema, wire

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Lane:
    """What one thread, or one stream of a device, did in the whole run.

    Attributes:
        name: of the thread, or of the vendor.
        device: number of the device; None for a thread.
        stream: number of the stream.
        begin, end: ns since the run's start, shape (spans,).
        node: node of each span by the builder's ids, shape (spans,).
    """

    name: str
    device: int | None
    stream: int
    begin: Ints
    end: Ints
    node: Ints

    def within(self, begin_ns: int, end_ns: int) -> Ints:
        """Return the places of the spans that overlap a time, in the order of their ends."""
        found = np.flatnonzero((self.begin < end_ns) & (self.end > begin_ns))
        # Of spans that end together, the one that began last is the inner one.
        return found[np.lexsort((-self.begin[found], self.end[found]))]


@dataclass(frozen=True, slots=True)
class KeptStep:
    """One step to keep.

    Attributes:
        number: of the step, from 1.
        begin_ns: since the run's start.
        end_ns: when it ended.
        reasons: why it is kept, as `ExemplarReason`.
    """

    number: int
    begin_ns: int
    end_ns: int
    reasons: int


def exemplars_section(
    steps: Sequence[KeptStep], lanes: Sequence[Lane], place: Ints, node_count: int
) -> bytes:
    """Return the payload of the section.

    Args:
        steps: in ascending order of number.
        lanes: threads, then streams.
        place: id of each node in the finished tree by the builder's ids.
        node_count: nodes of the finished tree.
    """
    return wire.encode(
        "ExemplarTable",
        {
            "exemplars": [_exemplar(step, lanes, place) for step in steps],
            "node_count": node_count,
        },
    )


def _exemplar(step: KeptStep, lanes: Sequence[Lane], place: Ints) -> dict[str, Any]:
    found = (
        (number, lane, lane.within(step.begin_ns, step.end_ns)) for number, lane in enumerate(lanes)
    )
    return {
        "number": step.number,
        "begin_ns": step.begin_ns,
        "end_ns": step.end_ns,
        "reasons": step.reasons,
        "lanes": [
            _lane(number, lane, spans, step, place) for number, lane, spans in found if len(spans)
        ],
        "rank": 0,
    }


def _lane(number: int, lane: Lane, spans: Ints, step: KeptStep, place: Ints) -> dict[str, Any]:
    end = lane.end[spans] - step.begin_ns
    columns = {
        "node_step": np.diff(place[lane.node[spans]], prepend=0).astype("<i4"),
        "end_step": np.diff(end, prepend=0).astype("<i8"),
        "duration_ns": (lane.end - lane.begin)[spans].astype("<i8"),
    }
    return {
        "name": lane.name,
        "recorder": number + 1,
        "is_device": lane.device is not None,
        "device": lane.device or 0,
        "stream": max(lane.stream, 0),
        "known_from_ns": 0,
    } | {
        field: wire.column(kind, columns[field].tobytes())
        for field, kind in schema.SPAN_TYPES.items()
    }
