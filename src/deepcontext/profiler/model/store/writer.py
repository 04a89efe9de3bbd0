"""From the model to the bytes of a profile file; `wire.py` does the encoding."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from deepcontext.profiler.format import schema, wire
from deepcontext.profiler.model.store.column import DTYPES

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from deepcontext.profiler.model.metric_rows import MetricRows
    from deepcontext.profiler.model.profile_model import ProfileModel


def encode_profile(profile: ProfileModel) -> bytes:
    """Return the bytes of a .dcprof file that holds `profile`."""
    frames, tree = profile.frames, profile.tree
    return wire.encode_file({
        "strings": frames.strings,
        "frames": _columns(schema.FRAME_TYPES, frames),
        "nodes": _columns(schema.NODE_TYPES, tree),
        "metrics": [_metric(rows) for rows in profile.stored_metrics().values()],
        "run": dataclasses.asdict(profile.run),
        "trust": dataclasses.asdict(profile.trust),
        "sections": profile.sections,
    })


def _metric(rows: MetricRows) -> dict[str, Any]:
    return {**dataclasses.asdict(rows.descriptor), **_columns(schema.ROW_TYPES, rows)}


def _columns(types: Mapping[str, str], table: object) -> dict[str, Any]:
    """Return the columns of a table by name; None for one that the table lacks."""
    return {name: _column(kind, getattr(table, name)) for name, kind in types.items()}


def _column(type_name: str, values: npt.NDArray[Any] | None) -> dict[str, Any] | None:
    if values is None:
        return None
    little_endian = np.ascontiguousarray(values, DTYPES[type_name])
    return wire.column(type_name, little_endian.tobytes())
