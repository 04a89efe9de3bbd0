"""Steps that were kept whole: what each thread and each stream of a device did, event by event.

Does not choose the steps (`native/core/exemplars.h`). Time between two spans is known from samples only,
which have no order.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from deepcontext.profiler.format import schema
from deepcontext.profiler.format.node_sections import EXEMPLARS
from deepcontext.profiler.model.node_table import NodeTable
from deepcontext.profiler.model.run_info import ALL_RANKS
from deepcontext.profiler.model.store.column import ColumnError, check_table, decode_column

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

# A damaged column may sum up to anything; no step lasts 146 years.
_MOST_NS: Final = 2**62


class ExemplarReason(enum.IntFlag):
    """Why a step was kept."""

    SLOW = 1
    RANDOM = 2
    MARKED = 4


@dataclass(frozen=True, slots=True)
class Exemplar:
    """One step that was kept whole.

    Attributes:
        place: from 0, in order of time.
        number: of the step, from 1.
        begin_ns: end of the step before, since the session's start.
        end_ns: its own end.
        reasons: why it was kept.
        rank: number of the rank in a profile of joined ranks, whose times are since the start of this rank's
            session; None in another profile.
    """

    place: int
    number: int
    begin_ns: int
    end_ns: int
    reasons: ExemplarReason
    rank: int | None = None

    @property
    def duration_ns(self) -> int:
        """Elapsed time of the step."""
        return self.end_ns - self.begin_ns


@dataclass(frozen=True, slots=True)
class Lane:
    """What one thread, or one stream of a device, did in a step. Spans of a thread are nested.

    Attributes:
        name: of the thread, or of the collector that has the device's records.
        recorder: tells lanes of the same name from each other.
        device: number of the device; None for a thread.
        stream: number of the stream, 0 for a thread.
        known_from_ns: spans that ended before are not known; since the step's begin.
        node: node of each span, int64, by begin, the outer one first.
        begin_ns: since the step's begin, int64; negative for spans that began before.
        duration_ns: int64.
    """

    name: str
    recorder: int
    device: int | None
    stream: int
    known_from_ns: int
    node: Ints
    begin_ns: Ints
    duration_ns: Ints

    def __len__(self) -> int:
        """Return the number of spans."""
        return len(self.node)


class ExemplarTable(NodeTable):
    """The kept steps that a profile's file holds; none without steps."""

    section = EXEMPLARS
    message = "ExemplarTable"

    @property
    def exemplars(self) -> tuple[Exemplar, ...]:
        """The kept steps, in order of time; those of joined ranks by rank."""
        return tuple(
            Exemplar(
                place,
                each.number,
                each.begin_ns,
                each.end_ns,
                ExemplarReason(each.reasons & 7),
                each.rank if self._profile.run.rank == ALL_RANKS else None,
            )
            for place, each in enumerate(self._message.exemplars)
        )

    def lanes(self, exemplar: Exemplar) -> tuple[Lane, ...]:
        """Return the threads, in the order in which they began to record, then the streams.

        Raises:
            ProfileDataError: the columns are damaged.
        """
        lanes = map(self._lane, self._message.exemplars[exemplar.place].lanes)
        return tuple(
            sorted(lanes, key=lambda each: (each.device is not None, each.device or 0, each.stream))
        )

    def _lane(self, message: Any) -> Lane:
        columns = {name: getattr(message, name) for name in schema.SPAN_TYPES}
        try:
            check_table(columns, schema.SPAN_TYPES, message.node_step.count)
            step, end_step, duration = (
                decode_column(name, each).astype(np.int64) for name, each in columns.items()
            )
        except ColumnError as error:
            raise self._damage(f"lane '{message.name}': {error}") from error
        node, end = np.cumsum(step), np.cumsum(end_step)
        if len(node) and (
            node.min() < 0
            or node.max() >= self._size
            or duration.min() < 0
            or max(end.max(), duration.max()) > _MOST_NS
            or end.min() < -_MOST_NS
        ):
            raise self._damage(f"lane '{message.name}': a span is out of range")
        begin = end - duration
        order = np.lexsort((np.arange(len(end), 0, -1), -end, begin))
        return Lane(
            message.name,
            message.recorder,
            message.device if message.is_device else None,
            message.stream,
            message.known_from_ns,
            node[order],
            begin[order],
            duration[order],
        )
