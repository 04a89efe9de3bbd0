"""Profiles that are cut into windows, made without a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from deepcontext.profiler.format import wire
from deepcontext.profiler.format.node_sections import WINDOWS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.profile import Profile


def rows(node: Sequence[int], count: Sequence[int], total: Sequence[int]) -> dict[str, Any]:
    """Return the rows of a metric in a window."""

    def column(kind: str, dtype: str, values: Sequence[int]) -> dict[str, Any]:
        return wire.column(kind, np.array(values, dtype).tobytes())

    return {
        "node_step": column("UINT32", "<u4", np.diff([0, *node]).tolist()),
        "count": column("INT64", "<i8", count),
        "total": column("INT64", "<i8", total),
    }


def with_windows(profile: Profile, windows: Sequence[dict[str, Any]], **table: Any) -> Profile:
    """Return the profile with these windows."""
    content = {"windows": windows, "node_count": len(profile.tree), **table}
    return profile.with_section(WINDOWS, wire.encode("WindowTable", content))
