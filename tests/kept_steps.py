"""Profiles with kept steps, made without a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from deepcontext.profiler.format import schema, wire
from deepcontext.profiler.format.node_sections import EXEMPLARS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.profile import Profile

_DTYPES = {"INT32": "<i4", "INT64": "<i8"}


def lane(
    spans: Sequence[tuple[int, int, int]],
    name: str = "MainThread",
    *,
    device: int | None = None,
    stream: int = 0,
    known_from_ns: int = 0,
) -> dict[str, Any]:
    """Return a lane with spans (node, begin_ns, duration_ns) in any order."""
    ended = sorted(spans, key=lambda span: span[1] + span[2])
    columns = {
        "node_step": np.diff([node for node, _, _ in ended], prepend=0),
        "end_step": np.diff([begin + duration for _, begin, duration in ended], prepend=0),
        "duration_ns": np.array([duration for _, _, duration in ended], np.int64),
    }
    return {
        "name": name,
        "recorder": stream + 1,
        "is_device": device is not None,
        "device": device or 0,
        "stream": stream,
        "known_from_ns": known_from_ns,
    } | {
        field: wire.column(kind, columns[field].astype(_DTYPES[kind]).tobytes())
        for field, kind in schema.SPAN_TYPES.items()
    }


def step(
    number: int, begin_ns: int, end_ns: int, lanes: Sequence[dict[str, Any]], reasons: int = 1
) -> dict[str, Any]:
    """Return a kept step."""
    return {
        "number": number,
        "begin_ns": begin_ns,
        "end_ns": end_ns,
        "reasons": reasons,
        "lanes": lanes,
    }


def with_steps(profile: Profile, *steps: dict[str, Any], nodes: int | None = None) -> Profile:
    """Return the profile with these kept steps, whose spans refer to `nodes` nodes."""
    table = {"exemplars": steps, "node_count": len(profile.tree) if nodes is None else nodes}
    return profile.with_section(EXEMPLARS, wire.encode("ExemplarTable", table))
