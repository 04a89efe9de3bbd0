"""From the bytes of a profile file to the model.

Invariants: every index is checked against its table before use; any bytes give either a valid
model or a `ProfileDataError` that names file and field. The tree and the frames are decoded at
once, the nodes and sums of a metric at its first use, its other columns when they are needed.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from google.protobuf.message import DecodeError

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format import schema
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import RENAMED, Aggregation, MetricDescriptor
from deepcontext.profiler.format.schema import Shape
from deepcontext.profiler.format.status import Status
from deepcontext.profiler.model.frame_table import FrameTable
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.metric_table import DeferredRows, MetricTable
from deepcontext.profiler.model.profile_model import ProfileModel
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.profiler.model.store.column import ColumnError, check_table, decode_column
from deepcontext.profiler.model.store.framing import open_body
from deepcontext.profiler.model.store.messages import message_class
from deepcontext.profiler.model.tree import MAX_NODES, Tree
from deepcontext.profiler.model.trust import CollectorReport, TrustReport

if TYPE_CHECKING:
    import enum

    import numpy.typing as npt

    Array = npt.NDArray[Any]


def read_profile(content: bytes, source: str) -> ProfileModel:
    """Read a profile.

    Args:
        content: the whole file.
        source: name of the file in errors.

    Raises:
        ProfileDataError: the content is not a profile, is damaged, or is too new for this build.
    """
    body = open_body(content, source)
    try:
        message: Any = message_class("ProfileBody").FromString(body.content)
    except DecodeError as error:
        raise _damage(source, "body", f"not a ProfileBody message ({error})") from error
    return _Reader(source, message, is_newer=body.is_newer).read()


def _damage(source: str, field: str, what: str) -> ProfileDataError:
    return ProfileDataError(
        f"cannot read '{source}': field {field}: {what}; the checksum matches, so the file was "
        "written with this error: report the error to the file's author, and record the profile "
        "again"
    )


class _Reader:
    """Reads one `ProfileBody`; `is_newer` if a newer minor version wrote the file."""

    def __init__(self, source: str, body: Any, *, is_newer: bool) -> None:
        self._source = source
        self._body = body
        self._is_newer = is_newer
        self._nodes: dict[tuple[int, int, bytes], Array] = {}

    def read(self) -> ProfileModel:
        frames = self._frames()
        tree = self._tree(len(frames))
        return ProfileModel(
            frames=frames,
            tree=tree,
            metrics=self._metrics(len(tree)),
            run=RunInfo(**_plain_fields(self._body.run, "RunInfo")),
            trust=self._trust(),
            sections=_sorted_map(self._body.sections),
        )

    def _frames(self) -> FrameTable:
        strings = tuple(self._body.strings)
        columns = self._table("frames", self._body.frames, schema.FRAME_TYPES)
        for name in ("name", "file"):
            self._check_below(f"frames.{name}", columns[name], len(strings), "strings")
        columns["kind"] = self._known("frames.kind", columns["kind"], FrameKind, FrameKind.MARKER)
        return FrameTable(**columns, strings=strings)

    def _tree(self, frame_count: int) -> Tree:
        columns = self._table("nodes", self._body.nodes, schema.NODE_TYPES)
        self._check_below("nodes.frame", columns["frame"], frame_count, "frames")
        columns["phase"] = self._known("nodes.phase", columns["phase"], Phase, Phase.OTHER)
        try:
            return Tree.from_preorder(**columns)
        except ValueError as error:
            raise self._damage("nodes", str(error)) from error

    def _metrics(self, node_count: int) -> MetricTable:
        sources: dict[str, MetricRows | DeferredRows] = {}
        for metric in self._body.metrics:
            field = f"metrics['{metric.name}']"
            name = RENAMED.get(metric.name, metric.name)
            if name in sources:
                raise self._damage(field, "occurs twice")
            if metric.node.count > node_count:
                raise self._damage(
                    f"{field}.node", f"{metric.node.count} rows for {node_count} nodes"
                )
            aggregation = self._aggregation(field, metric.aggregation)
            present = {
                name: kind for name, kind in schema.ROW_TYPES.items() if _is_stored(metric, name)
            }
            self._check_table(field, metric, present)
            descriptor = MetricDescriptor(name, metric.unit, aggregation, metric.description)
            sources[name] = DeferredRows(
                descriptor,
                partial(self._metric_rows, metric, descriptor, present, node_count),
            )
        return MetricTable(sources)

    def _metric_rows(
        self, metric: Any, descriptor: MetricDescriptor, types: dict[str, str], node_count: int
    ) -> MetricRows:
        field = f"metrics['{metric.name}']"
        # Most questions are about sums alone.
        deferred = {
            name: partial(self._metric_column, field, metric, name)
            for name in types
            if name not in {"node", "total"}
        }
        present = {
            "descriptor": descriptor,
            "node": self._metric_nodes(field, metric, node_count),
            **self._decode(field, metric, {"total": types["total"]}),
        }
        return MetricRows.of_deferred(present, deferred)

    def _metric_nodes(self, field: str, metric: Any, node_count: int) -> Array:
        # Metrics that are measured at the same nodes have equal columns of nodes.
        key = (metric.node.encoding, metric.node.count, metric.node.data)
        if key not in self._nodes:
            (node,) = self._decode(field, metric, {"node": schema.ROW_TYPES["node"]}).values()
            self._check_below(f"{field}.node", node, node_count, "nodes")
            falling = np.flatnonzero(node[1:] <= node[:-1])
            if len(falling):
                raise self._damage(f"{field}.node", f"row {falling[0] + 1}: ids must ascend")
            self._nodes[key] = node
        return self._nodes[key]

    def _metric_column(self, field: str, metric: Any, name: str) -> Array:
        (column,) = self._decode(field, metric, {name: schema.ROW_TYPES[name]}).values()
        if name == "count":
            events = float(np.sum(column, dtype=np.float64))
            if events >= _MOST_EVENTS:
                raise self._damage(f"{field}.count", f"{events:.3g} events, expected below 2**62")
        if name == "m2":
            wrong = np.flatnonzero(~(np.isfinite(column) & (column >= 0)))
            if len(wrong):
                found = f"row {wrong[0]}: {column[wrong[0]]}"
                raise self._damage(f"{field}.m2", f"{found}, expected a sum of squares")
        return column

    def _aggregation(self, field: str, value: int) -> Aggregation:
        try:
            return Aggregation(value)
        except ValueError:
            if self._is_newer:
                return Aggregation.PROPERTY  # the aggregation that combines nothing
            raise self._damage(f"{field}.aggregation", f"unknown value {value}") from None

    def _trust(self) -> TrustReport:
        trust = self._body.trust
        values = _plain_fields(trust, "TrustReport")
        cost = values["hook_cost_ns_per_event"]
        if cost is not None and not math.isfinite(cost):
            field = "trust.hook_cost_ns_per_event"
            raise self._damage(field, f"{cost}, expected a finite number")
        values["collectors"] = tuple(self._collector(report) for report in trust.collectors)
        return TrustReport(**values)

    def _collector(self, report: Any) -> CollectorReport:
        values = _plain_fields(report, "CollectorReport")
        try:
            values["status"] = Status(report.status)
        except ValueError:
            if not self._is_newer:
                field = f"trust.collectors['{report.name}'].status"
                known = ", ".join(Status)
                raise self._damage(field, f"'{report.status}' is none of {known}") from None
            values["status"] = Status.DEGRADED
        return CollectorReport(**values)

    def _table(self, field: str, message: Any, types: dict[str, str]) -> dict[str, Array]:
        self._check_table(field, message, types)
        return self._decode(field, message, types)

    def _check_table(self, field: str, message: Any, types: dict[str, str]) -> None:
        columns = {name: getattr(message, name) for name in types}
        rows = next(iter(columns.values())).count
        if rows > MAX_NODES:
            raise self._damage(field, f"{rows} rows, at most {MAX_NODES} are possible")
        try:
            check_table(columns, types, rows)
        except ColumnError as error:
            raise self._damage(field, str(error)) from error

    def _decode(self, field: str, message: Any, types: dict[str, str]) -> dict[str, Array]:
        columns = {name: getattr(message, name) for name in types}
        try:
            if len(types) == 1 or message.ByteSize() < _LARGE_TABLE:
                return {name: decode_column(name, each) for name, each in columns.items()}
            # zlib releases the GIL.
            with ThreadPoolExecutor() as pool:
                decoded = pool.map(decode_column, columns.keys(), columns.values())
                return dict(zip(columns, decoded, strict=True))
        except ColumnError as error:
            raise self._damage(field, str(error)) from error

    def _check_below(self, field: str, indices: Array, size: int, table: str) -> None:
        beyond = np.flatnonzero(indices >= size)
        if len(beyond):
            row = beyond[0]
            raise self._damage(
                field, f"row {row}: index {indices[row]}, but '{table}' has {size} rows"
            )

    def _known(
        self, field: str, values: Array, known: type[enum.IntEnum], stand_in: enum.IntEnum
    ) -> Array:
        """Return the values, with `stand_in` for values that a newer minor version added."""
        # A table of all 256 values: several times faster than isin over a million rows.
        is_unknown = np.ones(np.iinfo(np.uint8).max + 1, np.bool_)
        is_unknown[list(known)] = False
        unknown = is_unknown[values]
        if not unknown.any():
            return values
        if self._is_newer:
            return np.where(unknown, np.uint8(stand_in), values)
        row = int(np.argmax(unknown))
        raise self._damage(field, f"row {row}: unknown value {values[row]}")

    def _damage(self, field: str, what: str) -> ProfileDataError:
        return _damage(self._source, field, what)


# Bytes as stored, of which zlib decompresses about 80 MB a second.
_LARGE_TABLE: Final = 1 << 20
_MOST_EVENTS: Final = 2.0**62  # any sum of counts then fits into the int64 of the views
_ALWAYS_STORED = frozenset({"node", "count", "total"})


def _is_stored(metric: Any, column: str) -> bool:
    return column in _ALWAYS_STORED or metric.HasField(column)


def _plain_fields(message: Any, name: str) -> dict[str, Any]:
    """Return the fields of a message, called `name` in the schema, as the model holds them."""
    values: dict[str, Any] = {}
    for field in schema.MESSAGES[name]:
        value = getattr(message, field.name)
        match field.shape:
            case Shape.REPEATED:
                value = tuple(value)
            case Shape.MAP:
                value = _sorted_map(value)
            case Shape.OPTIONAL:
                value = value if message.HasField(field.name) else None
            case Shape.ONE:
                pass
        values[field.name] = value
    return values


def _sorted_map(value: Any) -> dict[str, Any]:
    # A map has no order on the wire; sorting makes every read of a file return the same order.
    return {name: value[name] for name in sorted(value)}
