"""Collectives of compiled programs that run on several processes: how long each took on this one.

The native core numbers them by the launches of their function (`native/jax/collectives.h`) and times those
that run in a window of the tracer (`sampling.py`).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from deepcontext import _native
from deepcontext.profiler.format import rank_collectives

if TYPE_CHECKING:
    from collections.abc import Mapping


def sections() -> Mapping[str, bytes]:
    """Return the times of single collectives, where there are any."""
    found: dict[str, Any] = {**_native.jax_collectives()}
    if not found["groups"] and not found["left_out"]:
        return {}
    names: Counter[tuple[str, tuple[int, ...]]] = Counter()
    groups = []
    for name, members, called in found["groups"]:
        same = names[name, tuple(members)]
        names[name, tuple(members)] += 1
        groups.append([f"{name} #{same + 1}" if same else name, members, called])
    content = {**found, "groups": groups, "are_apart": True, "unknown": 0, "unmatched": 0}
    content["ended"] = len(found["rows"])
    return {rank_collectives.JAX_SECTION: rank_collectives.encode(content)}
