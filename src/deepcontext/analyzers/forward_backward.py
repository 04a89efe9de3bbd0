"""Forward/backward imbalance: a backward that takes many times its forward.

The backward of a matrix product is two products, so twice the forward is expected. Indexing with a
tensor is judged separately: its backward adds up rows one by one, or sorts the indices on a GPU.
Another backward is a warning only if most of it is an operator that a different forward avoids.

The longest call of each backward counts as an average call, because the first call loads libraries, or
compiles the backward of a `torch.compile` region. The backward of a backward (gradients of gradients)
is intended and left out.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.attached_steps import attached_steps
from deepcontext.analyzers.shared.first_calls import first_calls
from deepcontext.analyzers.shared.gathered_linear import gathered_linear
from deepcontext.analyzers.shared.operator_names import (
    EMBEDDING,
    EMBEDDING_BY_INDEX,
    JOINS,
    PRODUCTS,
)
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import HOST_TIME_NS
from deepcontext.profiler.model.metric_values import total
from deepcontext.profiler.model.query import Query

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

# Products take twice the forward; writing gradients and sums over broadcast dimensions add to this.
_LEAST_RATIO: Final = 6.0
_LEAST_SHARE: Final = 0.10
# On a CPU the forward is expensive too; the advised operator replaces both.
_LEAST_INDEX_RATIO: Final = 0.25
_LEAST_INDEX_SHARE: Final = 0.05
_AUTOGRAD_NODE: Final = re.compile(r"Backwards?\d*$")
# The backward of index_select and gather adds up rows, which costs more than reading them; the backward
# of a product of few rows writes a gradient as large as its weights; that of a join hands each of its
# operands a gradient. None has a cheaper form.
_NO_CHEAPER: Final = frozenset({"aten::index_select", "aten::gather"}) | PRODUCTS | JOINS
# Operators of a backward that depend on how the forward is written: a gradient of the whole input's size
# filled with zeros, a sort of indices, a sum over dimensions that were broadcast.
_AVOIDABLE: Final = frozenset(
    f"aten::{name}"
    for name in (
        "zeros",
        "zeros_like",
        "new_zeros",
        "zero_",
        "fill_",
        "slice_backward",
        "select_backward",
        "index_put_",
        "_index_put_impl_",
        "embedding_dense_backward",
        "sort",
        "sum",
        "sum_to_size",
    )
)
_LEAST_AVOIDABLE: Final = 0.5
# Of the backward of an embedding: more goes into the zeros of its gradient than into the rows that were read.
_LEAST_FILLED: Final = 0.5
# Without many zeros, its backward sorts the indices and adds up rows: no other form is as fast (measured).
_BAG: Final = "aten::_embedding_bag"
_DENSE_GRADIENTS: Final = frozenset({
    "aten::embedding_dense_backward",
    "aten::_embedding_bag_dense_backward",
})
_FILLS: Final = frozenset({"aten::zeros", "aten::zero_", "aten::fill_"})


def _find(profile: Profile) -> list[Finding]:
    metric = source_locations.cost_metric(profile)
    if not metric or metric == source_locations.DEVICE_TIME:
        return []
    backwards = _caused_backwards(profile)
    # Why these backwards take long is known then.
    if attached := attached_steps(profile, backwards, metric):
        return attached
    parents = _parents(backwards)
    least = _LEAST_INDEX_SHARE * total(profile, metric)
    filled = _filled(profile, metric)
    # What is gathered changes with the layer that `cheaper_operator` moves before the gather.
    told = source_locations.of_same_functions(profile, gathered_linear(profile))
    locations = [
        (kind, location)
        for kind, query in _kinds(parents, filled, metric)
        for location in source_locations.by_line(query, metric, least)
        if kind is not _Kind.INDEX or not told[location.nodes[0]]
    ]
    if not locations:
        return []
    columns = (
        source_locations.forward_inclusive(profile, metric),
        _not_judged(profile, backwards, metric),
        _avoidable(profile, metric),
    )
    found = []
    for kind, location in locations:
        cost = _Cost(*(int(column[list(location.nodes)].sum()) for column in columns))
        found.append(_judge(profile, metric, location, cost, kind))
    return [finding for finding in found if finding is not None]


def _caused_backwards(profile: Profile) -> Query:
    """Select the backward operators right below the forward operators that caused them."""
    tree = profile.tree
    is_operator = profile.is_kind(FrameKind.OPERATOR)
    is_backward = is_operator & (tree.phase == Phase.BACKWARD)
    parent = np.maximum(tree.parent, 0)
    return Query(
        profile, is_backward & is_operator[parent] & (tree.phase[parent] != Phase.BACKWARD)
    )


def _parents(query: Query) -> Query:
    tree = query.profile.tree
    mask = np.zeros(len(tree), np.bool_)
    mask[tree.parent[query.nodes()]] = True
    return Query(query.profile, mask)


def _not_judged(profile: Profile, backwards: Query, metric: str) -> source_locations.Ints:
    """Return costs that are no part of an ordinary backward: first calls, backwards of backwards.

    Returns:
        the metric, in its unit, with descendants, shape (nodes,).
    """
    # Calls on a device are not timed individually.
    is_timed = metric == HOST_TIME_NS.name
    column = first_calls(profile, backwards.mask() & is_timed)
    second = source_locations.outermost(_second_order(profile)).nodes()
    column[second] += profile.inclusive(metric)[second]
    return profile.tree.inclusive(column)


def _avoidable(profile: Profile, metric: str) -> source_locations.Ints:
    """Return the cost of the avoidable operators of backwards, with descendants, shape (nodes,)."""
    found = source_locations.operators(profile, _AVOIDABLE).phase("backward")
    inside = profile.tree.at_or_below(found.mask())
    return profile.tree.inclusive(np.where(inside, profile.exclusive(metric), 0))


def _filled(profile: Profile, metric: str) -> source_locations.Ints:
    """Return the cost of filling gradients of embeddings with zeros, with descendants, shape (nodes,)."""
    tree = profile.tree
    dense = source_locations.operators(profile, _DENSE_GRADIENTS)
    if not dense.count():
        return np.zeros(len(tree), np.int64)
    fills = source_locations.operators(profile, _FILLS).mask() & tree.below(dense.mask())
    return tree.inclusive(np.where(tree.at_or_below(fills), profile.exclusive(metric), 0))


def _second_order(profile: Profile) -> Query:
    """Select the nodes of autograd that operators of a backward made."""
    tree = profile.tree
    autograd = source_locations.nodes_named(
        profile, FrameKind.OPERATOR, lambda name: _AUTOGRAD_NODE.search(name) is not None
    )
    of_backward = tree.phase[np.maximum(tree.parent, 0)] == Phase.BACKWARD
    return Query(profile, autograd.mask() & of_backward)


class _Kind(enum.Enum):
    """What is judged together, of one line."""

    INDEX = enum.auto()  # gathers by table[index]
    FILLED = enum.auto()  # gathers whose backward mostly fills a gradient with zeros
    OTHER = enum.auto()


def _kinds(
    parents: Query, filled: source_locations.Ints, metric: str
) -> tuple[tuple[_Kind, Query], ...]:
    """Return the operators of each kind.

    A line may call layers of all kinds (`tower(vectors(users))`), whose backward hides that of a gather.
    """
    profile, mask = parents.profile, parents.mask()
    is_index = source_locations.operators(profile, {EMBEDDING_BY_INDEX}).mask()
    is_filled = source_locations.operators(profile, {EMBEDDING, _BAG}).mask() & (
        (filled > 0) & (filled >= _LEAST_FILLED * profile.inclusive(metric))
    )
    return (
        (_Kind.INDEX, Query(profile, mask & is_index)),
        (_Kind.FILLED, Query(profile, mask & is_filled)),
        (_Kind.OTHER, Query(profile, mask & ~is_index & ~is_filled)),
    )


@dataclass(frozen=True, slots=True)
class _Cost:
    """Parts of a location's cost.

    Attributes:
        forward: its forward.
        not_judged: costs outside an ordinary backward.
        avoidable: operators of the backward that a different forward avoids.
    """

    forward: int
    not_judged: int
    avoidable: int


def _judge(
    profile: Profile,
    metric: str,
    location: source_locations.Location,
    cost: _Cost,
    kind: _Kind,
) -> Finding | None:
    whole = total(profile, metric) - cost.not_judged
    backward = location.value - cost.forward - cost.not_judged
    share, ratio = backward / max(whole, 1), backward / max(cost.forward, 1)
    name = source_locations.base_name(profile.frame(location.nodes[0]).name)
    is_index, is_filled = kind is _Kind.INDEX, kind is _Kind.FILLED
    least_share = _LEAST_INDEX_SHARE if is_index else _LEAST_SHARE
    least_ratio = _LEAST_INDEX_RATIO if is_index else _LEAST_RATIO
    if share < least_share or ratio < least_ratio or name in _NO_CHEAPER:
        return None
    if name == _BAG and not is_filled:
        return None
    where = source_locations.location_text(profile, location.frame)
    spent = backward + cost.forward
    is_known = (
        is_index or is_filled or name == EMBEDDING or cost.avoidable >= _LEAST_AVOIDABLE * backward
    )
    if is_index:
        advice, misleads = _advice(profile)
    elif is_filled:
        advice, misleads = _FILLED_ADVICE, _FILLED_MISLEADS
    elif name == EMBEDDING and metric != source_locations.GPU_TIME:
        advice, misleads = _CPU_EMBEDDING_ADVICE, _CPU_EMBEDDING_MISLEADS
    else:
        advice, misleads = _ADVICE, _MISLEADS
    return Finding(
        id="forward_backward",
        severity=Severity.of_share(share) if is_known else Severity.INFO,
        title=(
            f"the backward of '{name}' at {where} takes {ratio:.1f} times its forward, "
            f"{share:.0%} of all"
            + (", mostly to fill a gradient of the table's size with zeros" if is_filled else "")
        ),
        nodes=location.nodes[:8],
        evidence={
            f"forward_{metric}": cost.forward,
            f"backward_{metric}": backward,
            "backward_share": share,
            "ratio": round(ratio, 2),
            "calls_count": location.count,
        },
        gain=(
            source_locations.bound(
                profile, metric, spent, "this gather and its backward cost nothing"
            )
            if is_index or name == EMBEDDING
            else source_locations.bound(profile, metric, backward, "this backward costs nothing")
        ),
        advice=advice,
        misleads=misleads,
    )


_ADVICE: Final = (
    "look at the operators of the backward below this node: a large zero-filled gradient, a sort, "
    "or a sum over a broadcast dimension can often be avoided by a different forward"
)
_MISLEADS: Final = (
    "the forward is a cheap view or reduction whose backward must write a full tensor; there are few "
    "calls, and the first call sets up the backward's libraries"
)


_FILLED_ADVICE: Final = (
    "the gradient is as large as the table, and a step reads few of its rows: torch.nn.Embedding(..., "
    "sparse=True) with SGD, Adagrad or SparseAdam keeps and updates the rows that were read; so does "
    "torch.nn.EmbeddingBag"
)
_FILLED_MISLEADS: Final = (
    "the optimizer has no sparse form (weight decay, momentum of all rows); a larger batch reads most "
    "rows"
)
_CPU_EMBEDDING_ADVICE: Final = (
    "on a CPU gather rows with table.index_select(0, index.flatten()): its backward adds whole "
    "rows at once, while the backward of embedding walks through the indices; sparse=True avoids the "
    "table-sized gradient"
)
_CPU_EMBEDDING_MISLEADS: Final = (
    "the model is trained on GPUs, where the backward of embedding is faster; "
    "padding_idx and max_norm have no counterpart in index_select"
)


def _advice(profile: Profile) -> tuple[str, str]:
    advice = (
        "gather rows with torch.index_select or torch.nn.functional.embedding instead of "
        "table[index]: their backward adds rows directly, while the backward of indexing sorts or "
        "serialises them; sparse=True avoids the table-sized gradient"
    )
    misleads = (
        "index_select adds with atomics on GPUs, which can be slower than the sort with many "
        "duplicate indices or on AMD GPUs; measure with your index distribution. A table-sized "
        "gradient is filled with zeros either way"
    )
    if "amd" in source_locations.vendors(profile):
        advice = (
            "compare table[index], index_select and embedding on this AMD GPU with your indices "
            "before changing; for skewed indices sum duplicates first (torch.unique with "
            "return_inverse, then index_add)"
        )
    return advice, misleads


ANALYZER = Analyzer("forward_backward", "does a backward take many times its forward?", _find)
