"""The steps that were kept whole, as the profile file holds them.

Does not choose them (`native/core/exemplars.h`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deepcontext.profiler.format import schema, wire
from deepcontext.profiler.format.node_sections import EXEMPLARS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepcontext._native import ExemplarFacts, LaneFacts, TreeReading


def section(reading: TreeReading, node_count: int) -> dict[str, bytes]:
    """Return the section by its name, empty for a run of which no step was kept."""
    exemplars = reading.exemplars()
    if not exemplars:
        return {}
    table = {"exemplars": _messages(reading, exemplars), "node_count": node_count}
    return {EXEMPLARS: wire.encode("ExemplarTable", table)}


def _messages(reading: TreeReading, exemplars: list[ExemplarFacts]) -> Iterator[dict[str, Any]]:
    """Yield one step at a time, so that only one is in memory unpacked."""
    for place, facts in enumerate(exemplars):
        yield {**facts, "lanes": [_lane(*lane) for lane in reading.exemplar_lanes(place)]}


def _lane(facts: LaneFacts, *data: bytes) -> dict[str, Any]:
    columns = zip(schema.SPAN_TYPES.items(), data, strict=True)
    return {**facts} | {field: wire.column(kind, raw) for (field, kind), raw in columns}
