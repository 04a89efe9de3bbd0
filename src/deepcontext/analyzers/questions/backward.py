"""Does a backward take many times its forward?

The backward of a product is two products, so twice the forward is expected. Gathers are judged separately:
their backward adds up rows one by one, sorts the indices, or fills a gradient of the table's size. Another
backward is a warning only if most of it is an operator that a different forward avoids. First calls, which
load libraries or compile, and backwards of backwards are left out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers import catalogue
from deepcontext.analyzers.causes import Cause, at_place
from deepcontext.analyzers.shared import source_locations as at
from deepcontext.analyzers.shared.first_calls import first_calls
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.memory_metrics import GPU_PREFIX
from deepcontext.profiler.format.metric import HOST_TIME_NS
from deepcontext.profiler.model.metric_values import inclusive_or_zeros, total
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.summaries.basis import basis_of
from deepcontext.profiler.summaries.setup_time import compiling_in_operators

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepcontext.profiler.model.profile import Profile

# Products take twice the forward; writing gradients and sums over broadcast dimensions add to this.
_LEAST_RATIO: Final = 6.0
# On a CPU the forward of a gather is expensive too; the advised operator replaces both.
_LEAST_INDEX_RATIO: Final = 0.25
_LEAST_AVOIDABLE: Final = 0.5
# Of the backward of an embedding: more goes into the zeros of its gradient than into the rows that were read.
_LEAST_FILLED: Final = 0.5
# Those of parameters, held at the peak.
_GRADIENTS: Final = "peak_gradient_bytes"
_AUTOGRAD_NODE: Final = re.compile(r"Backwards?\d*$")


def find(profile: Profile) -> Iterator[Cause]:
    """Return lines whose backward costs too much."""
    metric = at.cost_metric(profile)
    if not metric or metric == at.DEVICE_TIME:
        return
    tree = profile.tree
    is_operator, parent = profile.is_kind(FrameKind.OPERATOR), np.maximum(tree.parent, 0)
    # The backward operators right below the forward operators that caused them.
    caused = is_operator & (tree.phase == Phase.BACKWARD) & is_operator[parent]
    caused &= tree.phase[parent] != Phase.BACKWARD
    if not caused.any():
        return
    parents = np.zeros(len(tree), np.bool_)
    parents[parent[caused]] = True
    dense = at.operators(profile, catalogue.operators("dense_gradients")).mask()
    fills = at.operators(profile, catalogue.operators("fills_gradients")).mask()
    filled = _inclusive(profile, metric, fills & tree.below(dense))
    is_index = at.operators(profile, catalogue.operators("embedding_by_index")).mask()
    tables = at.operators(profile, catalogue.operators("embedding embedding_bag")).mask()
    is_filled = tables & (filled > 0) & (filled >= _LEAST_FILLED * profile.inclusive(metric))
    avoidable = at.operators(profile, catalogue.operators("avoidable_backward")).phase("backward")
    updates = _updates(profile, metric) if is_filled.any() else np.zeros(len(tree), np.int64)
    columns = (
        at.forward_inclusive(profile, metric),
        _not_judged(profile, Query(profile, caused), metric),
        _inclusive(profile, metric, avoidable.mask()),
        np.where(is_filled, updates, 0),
    )
    kinds = {"index": is_index, "filled": is_filled, "": ~is_index & ~is_filled}
    for kind, mask in kinds.items():
        for location in at.by_line(
            Query(profile, parents & mask), metric, at.little(profile, metric)
        ):
            cost = tuple(int(column[list(location.nodes)].sum()) for column in columns)
            yield from _judge(profile, metric, location, cost, kind)


def _updates(profile: Profile, metric: str) -> at.Ints:
    """Return what the optimizer spends on the gradients that each node and all below it made, shape (nodes,).

    A pass over all parameters takes each as long as it is large; so the bytes of gradients divide its time.
    """
    spent = int(profile.exclusive(metric)[profile.tree.phase == Phase.OPTIMIZER].sum())
    whole = basis_of(profile).whole
    held = inclusive_or_zeros(whole, _GRADIENTS)
    held = held + inclusive_or_zeros(whole, f"{GPU_PREFIX}{_GRADIENTS}")
    return np.asarray(np.rint(held * (spent / max(int(held[0]), 1))), np.int64)


def _inclusive(profile: Profile, metric: str, mask: at.Mask) -> at.Ints:
    """Return the cost of some nodes and all below them, with descendants, shape (nodes,)."""
    if not mask.any():
        return np.zeros(len(mask), np.int64)
    inside = profile.tree.at_or_below(mask)
    return profile.tree.inclusive(np.where(inside, profile.exclusive(metric), 0))


def _not_judged(profile: Profile, backwards: Query, metric: str) -> at.Ints:
    """Return costs that are no part of an ordinary backward: first calls, backwards of backwards."""
    # Calls on a device are not timed individually.
    timed = backwards.mask() & (metric == HOST_TIME_NS.name)
    compiled = np.where(timed, compiling_in_operators(profile), 0)
    column = np.maximum(first_calls(profile, timed), compiled)
    tree = profile.tree
    autograd = at.nodes_named(
        profile, FrameKind.OPERATOR, lambda name: _AUTOGRAD_NODE.search(name) is not None
    ).mask()
    second = Query(profile, autograd & (tree.phase[np.maximum(tree.parent, 0)] == Phase.BACKWARD))
    nodes = at.outermost(second).nodes()
    column[nodes] += profile.inclusive(metric)[nodes]
    return tree.inclusive(column)


def _judge(
    profile: Profile, metric: str, location: at.Location, cost: tuple[int, ...], kind: str
) -> Iterator[Cause]:
    forward, not_judged, avoidable, update = cost
    whole = total(profile, metric) - not_judged
    backward = location.value - forward - not_judged
    ratio = backward / max(forward, 1)
    name = at.base_name(profile.frame(location.nodes[0]).name)
    is_index, is_embedding = kind == "index", name in catalogue.operators("embedding")
    if ratio < (_LEAST_INDEX_RATIO if is_index else _LEAST_RATIO):
        return
    if name in catalogue.operators("no_cheaper_backward"):
        return
    # Without many zeros, the backward of a bag has no faster form (measured).
    if name in catalogue.operators("embedding_bag") and kind != "filled":
        return
    if is_index:
        key = "gradient_by_index_on_amd" if "amd" in at.vendors(profile) else "gradient_by_index"
    elif kind == "filled":
        key = "gradient_of_zeros"
    elif is_embedding and metric != at.GPU_TIME:
        key = "gradient_of_embedding"
    else:
        is_known = is_embedding or avoidable >= _LEAST_AVOIDABLE * backward
        key = "long_backward" if is_known else "long_backward_for_unknown_reason"
    yield at_place(
        key,
        location,
        metric,
        value=backward + update,
        whole=max(whole, 1),
        saved=backward + update + (forward if is_index or is_embedding else 0),
        words={"name": name, "ratio": ratio},
        evidence={
            "forward_ns": forward,
            "backward_ns": backward,
            "ratio": round(ratio, 2),
            **({"update_ns": update} if update else {}),
        },
    )
