"""Reads trees of Triton's Proton (``.hatchet``, in JSON or MessagePack): one node a node.

The file holds sums by call path without times of day. A node with a device is a kernel,
``file:function@line`` a Python function, everything else a scope.
Source: github.com/triton-lang/triton, third_party/proton (TreeData.cpp, viewer.py).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import (
    BYTES_MOVED,
    CALL_DURATION_NS,
    FLOPS,
    GPU_TIME_NS,
    HOST_TIME_NS,
    LAUNCH_COUNT,
)
from deepcontext.profiler.format.status import Status
from deepcontext.profiler.importing.reader import Contents, Reading
from deepcontext.profiler.importing.tree_builder import ROOT, TreeBuilder
from deepcontext.profiler.importing.whole_file import content_of, damaged, json_of
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.profiler.model.trust import CollectorReport

if TYPE_CHECKING:
    from deepcontext.profiler.format.metric import MetricDescriptor
    from deepcontext.profiler.importing.source_file import SourceFile

_JSON: Final = re.compile(rb"\s*\[\s*\{")
_MESSAGE_PACK: Final = 0x92  # a list of two
_MARKS: Final = (b'"children"', b'"frame"')
_PYTHON: Final = re.compile(r"(?P<file>.+?):(?P<name>.+)@(?P<line>\d{1,9})")
_METRICS: Final = {
    "time (ns)": GPU_TIME_NS,
    "count": LAUNCH_COUNT,
    "bytes": BYTES_MOVED,
    "cpu_time (ns)": CALL_DURATION_NS,
}
_FLOPS: Final = re.compile(r"flops\d*")
_ABOUT_DEVICE: Final = frozenset({"device_id", "device_type"})
_VENDORS: Final = {"CUDA": "nvidia", "HIP": "amd"}
_MOST: Final = 2**62


class ProtonReader:
    """Reads trees of Proton."""

    name = "a tree of Proton"

    def recognises(self, head: bytes) -> bool:
        """Return whether the first bytes are those of a tree with frames."""
        if head[:1] == bytes([_MESSAGE_PACK]):
            return b"children" in head and b"frame" in head
        return bool(_JSON.match(head)) and all(mark in head for mark in _MARKS)

    def read(self, file: SourceFile) -> Contents:
        """Read a tree.

        Raises:
            ProfileDataError: the file is damaged, or has no device time.
        """
        content = _message_pack(file) if file.head[0] == _MESSAGE_PACK else json_of(file)
        tree = _Tree()
        if isinstance(content, list) and content and isinstance(content[0], dict):
            tree.read(content[0])
        if not tree.nodes:
            raise ProfileDataError(
                f"cannot read '{file.path}': a tree of Proton has nodes with 'frame' and 'metrics', and this "
                "file has none with values; name a .hatchet file"
            )
        return Contents(tree.builder, RunInfo(), tree.reading(), {})


class _Tree:
    def __init__(self) -> None:
        self.builder = TreeBuilder()
        self.nodes = 0
        self._odd: Counter[str] = Counter()
        self._vendors: Counter[str] = Counter()

    def read(self, root: dict[str, Any]) -> None:
        """Read all nodes; the root is Proton's own."""
        self._values(ROOT, root)
        waiting = [(child, ROOT) for child in _children(root)]
        while waiting:
            item, above = waiting.pop()
            self.nodes += 1
            node = self.builder.child(above, self.builder.frame(_frame(item)))
            self._values(node, item)
            waiting += [(child, node) for child in _children(item)]

    def reading(self) -> Reading:
        """Return what was in the file."""
        vendors = [_VENDORS.get(kind, kind.lower()) for kind in self._vendors]
        records = {"nodes": f"{sum(self._vendors.values()):,}"}
        details = {"unknown": ", ".join(self._odd)} if self._odd else {}
        return Reading(
            "Proton",
            {"nodes_read": self.nodes, "metrics_unknown": sum(self._odd.values())},
            (
                *(CollectorReport(vendor, Status.RAN, details=records) for vendor in vendors),
                CollectorReport(
                    "cpu sampling", Status.OFF, "a tree of Proton has times of devices alone"
                ),
            ),
            (
                "the file holds sums by call path: there are no steps, idle times or time of the host",
            ),
            details,
        )

    def _values(self, node: int, item: dict[str, Any]) -> None:
        metrics = item.get("metrics")
        if not isinstance(metrics, dict):
            return
        if "device_type" in metrics:
            self._vendors[str(metrics["device_type"])] += 1
        for name, value in metrics.items():
            metric = _METRICS.get(name) or (FLOPS if _FLOPS.fullmatch(name) else None)
            if metric and isinstance(value, int | float) and _is_usable(value):
                self._add(metric, node, round(value))
            elif name not in _ABOUT_DEVICE:
                self._odd[name[:40]] += 1

    def _add(self, metric: MetricDescriptor, node: int, value: int) -> None:
        if not value:
            return
        at, values = np.array([node], np.int64), np.array([value], np.int64)
        self.builder.add(metric, at, values)
        if metric is CALL_DURATION_NS:
            self.builder.add(HOST_TIME_NS, at, values)


def _is_usable(value: float) -> bool:
    return math.isfinite(value) and 0 <= value < _MOST


def _children(item: dict[str, Any]) -> list[dict[str, Any]]:
    found = item.get("children")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _frame(item: dict[str, Any]) -> Frame:
    given = item.get("frame")
    name = str(given.get("name", "")) if isinstance(given, dict) else ""
    metrics = item.get("metrics")
    if isinstance(metrics, dict) and "device_type" in metrics:
        return Frame(FrameKind.KERNEL, name or "<kernel without a name>")
    found = _PYTHON.fullmatch(name)
    if found:
        return Frame(FrameKind.PYTHON, found["name"], found["file"], int(found["line"]))
    return Frame(FrameKind.SCOPE, name or "<scope without a name>")


def _message_pack(file: SourceFile) -> Any:
    import msgspec  # noqa: PLC0415  other commands start without the decoder

    try:
        return msgspec.msgpack.decode(content_of(file))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise damaged(file, error) from error
