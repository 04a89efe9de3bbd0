"""From the model to the bytes of a profile file; the encoding itself is `wire.py`'s."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from deepcontext.profiler.format import wire
from deepcontext.profiler.model.store.column import DTYPES

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.model.metric_rows import MetricRows
    from deepcontext.profiler.model.profile_model import ProfileModel


def encode_profile(profile: ProfileModel) -> bytes:
    """Return the bytes of a .dcprof file that holds `profile`."""
    frames, tree = profile.frames, profile.tree
    return wire.encode_file({
        "strings": frames.strings,
        "frames": {
            "kind": _column("UINT8", frames.kind),
            "name": _column("UINT32", frames.name),
            "file": _column("UINT32", frames.file),
            "line": _column("UINT32", frames.line),
        },
        "nodes": {
            "parent": _column("INT32", tree.parent),
            "frame": _column("UINT32", tree.frame),
            "phase": _column("UINT8", tree.phase),
            "subtree_end": _column("INT32", tree.subtree_end),
        },
        "metrics": [_metric(rows) for rows in profile.stored_metrics().values()],
        "run": dataclasses.asdict(profile.run),
        "trust": dataclasses.asdict(profile.trust),
        "sections": profile.sections,
    })


def _metric(rows: MetricRows) -> dict[str, Any]:
    return {
        **dataclasses.asdict(rows.descriptor),
        "node": _column("UINT32", rows.node),
        "count": _column("UINT64", rows.count),
        "total": _column("INT64", rows.total),
        "minimum": None if rows.minimum is None else _column("INT64", rows.minimum),
        "maximum": None if rows.maximum is None else _column("INT64", rows.maximum),
        "m2": None if rows.m2 is None else _column("FLOAT64", rows.m2),
    }


def _column(type_name: str, values: npt.NDArray[Any]) -> dict[str, Any]:
    little_endian = np.ascontiguousarray(values, DTYPES[type_name])
    return wire.column(type_name, little_endian.tobytes())
