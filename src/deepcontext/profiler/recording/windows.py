"""The windows of a run, as the profile file holds them.

Does not cut (`native/core/windows.h`). Only metrics that add up over events have rows in windows, and the
durations of calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deepcontext.profiler.format import schema, wire
from deepcontext.profiler.format.metric import Aggregation
from deepcontext.profiler.format.node_sections import WINDOWS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from deepcontext._native import TreeReading, WindowFacts
    from deepcontext.profiler.format.metric import MetricDescriptor


def metric_names(metrics: Iterable[MetricDescriptor]) -> list[str]:
    """Return the metrics of which windows have rows."""
    return [each.name for each in metrics if each.aggregation is Aggregation.SUM]


def section(reading: TreeReading, node_count: int) -> dict[str, bytes]:
    """Return the section by its name, empty for a run that has not been cut."""
    windows = reading.windows()
    if not windows:
        return {}
    table = {
        "windows": _messages(reading, windows),
        "estimated": reading.estimated_metrics(),
        "node_count": node_count,
    }
    return {WINDOWS: wire.encode("WindowTable", table)}


def _messages(reading: TreeReading, windows: list[WindowFacts]) -> Iterator[dict[str, Any]]:
    """Yield one window at a time, so that only one is in memory unpacked."""
    for place, facts in enumerate(windows):
        yield {**facts, "metrics": [_rows(*rows) for rows in reading.window_rows(place)]}


def _rows(name: str, *data: bytes) -> dict[str, Any]:
    columns = zip(schema.WINDOW_ROW_TYPES.items(), data, strict=True)
    return {"name": name} | {field: wire.column(kind, raw) for (field, kind), raw in columns}
