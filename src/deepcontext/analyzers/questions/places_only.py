"""Which operator of one line takes much of the time? A place without a reason.

Matrix products and convolutions are the purpose of a model and are left out; so are collectives, whose time
may be waiting for a slower rank. Only operators that many programs can avoid (sorting, copying) are a
warning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers import catalogue
from deepcontext.analyzers.causes import HOST, Cause, at_place
from deepcontext.analyzers.shared import source_locations as at
from deepcontext.analyzers.shared.first_calls import first_calls
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import CALL_DURATION_NS
from deepcontext.profiler.model.grouping import sums
from deepcontext.profiler.model.metric_values import counts_or_zeros, total
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.collectives import collective_nodes
from deepcontext.profiler.summaries.jax import operations as jax_operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepcontext.profiler.model.profile import Profile

# Below a third, removing the whole cost makes the program less than 1.5 times as fast.
_LEAST_SHARE: Final = 1 / 3
# Work that runs once cannot be done less often.
_FEWEST_CALLS: Final = 3
_DENSE_KERNELS: Final = (
    "gemm",
    "conv",
    "cutlass",
    "nvjet",
    "xmma",
    "flash",
    "cijk_",
    "fmha",
    "matmul",
    "bmm",
    "attn",
)
_DENSE_OPERATIONS: Final = ("dot", "conv_", "convolution", "gemm", "matmul")
# What many programs can do without, by a part of the operator's name. Other operators are their work.
_AVOIDABLE: Final[dict[tuple[str, ...], str]] = {
    ("sort", "topk", "unique", "kthvalue", "median"): (
        "sort only values that changed since the last step, only as many as are needed (topk instead of "
        "sort), or once: before the loop, or after it where only the last result counts"
    ),
    ("copy", "clone", "contiguous", "cat", "stack", "repeat"): (
        "write results where they are needed (out=, a preallocated tensor, expand instead of repeat) "
        "instead of copying them there"
    ),
}


def find(profile: Profile) -> Iterator[Cause]:
    """Return places that take much of the time."""
    metric = at.cost_metric(profile)
    if not metric:
        return
    query = Query(profile, _candidates(profile, metric).mask() & ~collective_nodes(profile))
    for location in _by_line_exclusive(query, metric):
        name = at.base_name(profile.frame(location.nodes[0]).name)
        advice, is_avoidable = _advice(name)
        calls = counts_or_zeros(profile, CALL_DURATION_NS.name)[list(location.nodes)]
        is_avoidable &= not calls.any() or int(calls.sum()) >= _FEWEST_CALLS
        is_avoidable &= not _feeds_draws(profile, location) and not _is_part(profile, location)
        unit = "time in operators" if metric == HOST else "device's time"
        words = {"name": name, "unit": unit, "advice": advice}
        yield at_place(
            "costly_and_avoidable" if is_avoidable else "costly", location, metric, words=words
        )


def _is_part(profile: Profile, location: at.Location) -> bool:
    """Return whether the costliest operator is a part of another, which no line calls by itself."""
    node = location.nodes[0]
    above = profile.frame(int(profile.tree.parent[node]))
    if at.base_name(above.name) in catalogue.operators("all_sorts"):
        return False
    return profile.frame(node).kind is above.kind is FrameKind.OPERATOR


def _feeds_draws(profile: Profile, location: at.Location) -> bool:
    """Return whether the function adds up sorted chances and draws from them, which needs all of them."""
    own = at.in_functions_of(profile, np.array(location.nodes[:1]))
    return location.frame is not None and all(
        bool((at.operators(profile, names).mask() & own).any())
        for names in (catalogue.operators("draws"), {"aten::cumsum"})
    )


def _advice(name: str) -> tuple[str, bool]:
    """Return what helps, and whether many programs can avoid the operator."""
    bare = name.removeprefix("aten::")
    for parts, text in _AVOIDABLE.items():
        # XLA names a fusion after all that it computes.
        if "fusion" not in bare and any(part in bare for part in parts):
            return text, True
    return (
        f"look at what '{name}' computes there: do it once instead of every step, on fewer elements, in a "
        "narrower type, or in a cheaper form"
    ), False


def _candidates(profile: Profile, metric: str) -> Query:
    """Select the nodes that carry the metric, without dense mathematics and compilers."""
    dense = catalogue.operators("dense")
    if metric == at.GPU_TIME:
        kernels = at.nodes_named(
            profile,
            FrameKind.KERNEL,
            lambda name: not any(each in name.lower() for each in _DENSE_KERNELS),
        )
        return at.without(kernels, at.operators(profile, dense))
    if metric == at.DEVICE_TIME:
        products = np.zeros(len(profile.tree), np.bool_)
        for kind in (FrameKind.HLO, FrameKind.OPERATOR, FrameKind.SCOPE):
            products |= at.nodes_named(
                profile, kind, lambda name: any(each in name for each in _DENSE_OPERATIONS)
            ).mask()
        fusions = jax_operations.fusions(profile) if at.has_jax(profile) else ()
        names = {each.name for each in fusions if each.is_dense}
        names -= {each.name for each in fusions if not each.is_dense}
        products |= at.nodes_named(profile, FrameKind.HLO, names).mask()
        carrying = Query(profile, profile.exclusive(metric) > 0)
        return at.without(carrying, Query(profile, products))
    # The optimizer and the loader are judged elsewhere. A dense operator's backward lies below it under
    # other names. Compiling inside a compiled region counts as the region's exclusive time.
    mask = at.apart(at.operators(profile, lambda name: name not in dense)).mask()
    is_compiling = profile.tree.at_or_above(at.compiling(profile).mask())
    return Query(profile, mask & ~is_compiling & (profile.exclusive(metric) > 0))


def _by_line_exclusive(query: Query, metric: str) -> list[at.Location]:
    """Group nodes by line and name, by exclusive cost, so that dense parts below do not count.

    The longest call of a node counts as long as the mean of its others.
    """
    profile, nodes = query.profile, query.nodes()
    if not len(nodes):
        return []
    owner = at.owners(profile, nodes)
    line = np.where(owner == NO_NODE, 0, at.line_numbers(profile)[profile.tree.frame[owner]])
    least, spent = _LEAST_SHARE * total(profile, metric), profile.exclusive(metric)
    # An operator of a line takes no more than the whole line, so that few nodes have to be sorted.
    is_costly = (sums(line, spent[nodes], int(line.max()) + 1) >= least)[line]
    if not is_costly.any():
        return []
    nodes, owner, line = nodes[is_costly], owner[is_costly], line[is_costly]
    name = profile.frames.name[profile.tree.frame[nodes]]
    _, inverse = np.unique(line * len(profile.frames.strings) + name, return_inverse=True)
    if metric == HOST:
        spent = np.maximum(spent - first_calls(profile, query.mask()), 0)
    value = sums(inverse, spent[nodes], int(inverse.max()) + 1)
    found = []
    for index in np.flatnonzero(value >= least).tolist():
        members = np.flatnonzero(inverse == index)
        members = members[np.argsort(-spent[nodes[members]], kind="stable")]
        top = int(owner[members[0]])
        frame = None if top == NO_NODE else profile.frame(top)
        ids = tuple(nodes[members].tolist())
        count = int(counts_or_zeros(profile, metric)[list(ids)].sum())
        found.append(at.Location(frame, ids, int(value[index]), count))
    return sorted(found, key=lambda location: (-location.value, location.nodes))
