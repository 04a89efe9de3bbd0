"""Hotspot: one operator of one line, other than dense mathematics, that takes much of the time.

Matrix products and convolutions are the purpose of a model and are left out: a model that spends its
time on them is healthy, and `precision` judges them. Collectives are left out, because most of their
time may be waiting for a slower rank, which `rank_imbalance` names. Invariant: only operators that many
programs can avoid (sorting, copying) are a warning; for others the finding says where time goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.first_calls import first_calls
from deepcontext.analyzers.shared.jax_factorisations import repeated_factorisations
from deepcontext.analyzers.shared.jax_jacobians import tall_jacobians
from deepcontext.analyzers.shared.jax_permutations import at_permutations
from deepcontext.analyzers.shared.operator_names import DENSE, DRAWS
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.grouping import sums
from deepcontext.profiler.model.metric_values import counts_or_zeros, total
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.collectives import collective_nodes
from deepcontext.profiler.summaries.jax import operations as jax_operations

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

# Below a third, removing the whole cost makes the program less than 1.5 times as fast.
_LEAST_SHARE: Final = 1 / 3
# Work that runs once cannot be done less often.
_LEAST_CALLS: Final = 3
# Each calls the sort that does the work.
_SORTS: Final = frozenset({"aten::sort", "aten::argsort", "aten::msort"})
_DENSE_KERNELS: Final = ("gemm", "conv", "cutlass", "nvjet", "xmma", "flash", "cijk_", "fmha")


def _find(profile: Profile) -> list[Finding]:
    metric = source_locations.cost_metric(profile)
    if not metric:
        return []
    query = _costly(profile, metric)
    whole = total(profile, metric)
    unit = "time in operators" if metric == HOST_TIME_NS.name else "device's time"
    findings = []
    for location in _by_line_exclusive(query, metric):
        share = location.value / whole
        if share < _LEAST_SHARE:
            break
        name = source_locations.base_name(profile.frame(location.nodes[0]).name)
        where = source_locations.location_text(profile, location.frame)
        advice, is_avoidable = _advice(name)
        is_avoidable &= _is_repeated(profile, location) and not _feeds_draws(profile, location)
        is_avoidable &= not _is_part(profile, location)
        findings.append(
            Finding(
                id="hotspot",
                severity=Severity.of_share(share) if is_avoidable else Severity.INFO,
                title=f"'{name}' of {where} takes {share:.0%} of the {unit}",
                nodes=location.nodes[:8],
                evidence={metric: location.value, "time_share": share},
                gain=source_locations.bound(
                    profile, metric, location.value, f"'{name}' of this line costs nothing"
                ),
                advice=advice,
                misleads=(
                    "the line is the program's purpose; then only a better algorithm or kernel helps"
                ),
            )
        )
    return findings


def _is_repeated(profile: Profile, location: source_locations.Location) -> bool:
    """Return whether the operators ran more than once or twice, as far as their calls were counted."""
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)[list(location.nodes)]
    return not calls.any() or int(calls.sum()) >= _LEAST_CALLS


def _is_part(profile: Profile, location: source_locations.Location) -> bool:
    """Return whether the costliest operator is a part of another, which no line calls by itself."""
    node = location.nodes[0]
    above = profile.frame(int(profile.tree.parent[node]))
    if source_locations.base_name(above.name) in _SORTS:
        return False
    return profile.frame(node).kind is above.kind is FrameKind.OPERATOR


def _feeds_draws(profile: Profile, location: source_locations.Location) -> bool:
    """Return whether the function adds up sorted chances and draws from them, which needs all of them.

    Drawing from the best few needs no sort (topk).
    """
    if location.frame is None:
        return False
    here = (location.frame.file, location.frame.name)
    return all(
        any(each.frame and (each.frame.file, each.frame.name) == here for each in called)
        for called in (
            source_locations.by_function(
                source_locations.operators(profile, names), HOST_TIME_NS.name
            )
            for names in (DRAWS, {"aten::cumsum"})
        )
    )


# By a part of the operator's name; the first match counts. The advice keeps the result, or says what
# changes. Many programs can do without the first group; the second is the work of most programs.
_AVOIDABLE: Final = {
    ("sort", "topk", "unique", "kthvalue", "median"): (
        "sort only values that changed since the last step, only as many as are needed (topk "
        "instead of sort), or once before the loop"
    ),
    ("copy", "clone", "contiguous", "cat", "stack", "repeat"): (
        "write results where they are needed (out=, a preallocated tensor, expand instead of "
        "repeat) instead of copying them there"
    ),
}
_NEEDED: Final = {
    ("rand", "bernoulli", "normal_", "uniform_", "dropout", "multinomial"): (
        "draw random numbers for many steps at once, in the needed shape and on the needed device"
    ),
    ("index", "gather", "scatter", "embedding", "take"): (
        "move fewer elements: gather each row once (unique indices), keep rows wide and contiguous, "
        "and gather before, not after, the tensor is widened"
    ),
    (
        "exp",
        "log",
        "tanh",
        "sigmoid",
        "erf",
        "gelu",
        "silu",
        "softmax",
        "pow",
        "sqrt",
        "sin",
        "cos",
    ): (
        "compute it on fewer elements or in a narrower type (bfloat16), use a cheaper function, or "
        "compile the function around it (torch.compile), which vectorises and fuses it"
    ),
    ("norm", "var", "std", "mean", "sum"): (
        "avoid repeated reductions of the same values, and reduce along the dimension that is "
        "contiguous in memory"
    ),
}


def _advice(name: str) -> tuple[str, bool]:
    """Return what helps, and whether many programs can avoid the operator."""
    bare = name.removeprefix("aten::")
    for group, is_avoidable in ((_AVOIDABLE, True), (_NEEDED, False)):
        for parts, text in group.items():
            if any(part in bare for part in parts):
                return text, is_avoidable
    return (
        f"look at what '{name}' computes there: do it once instead of every step, on fewer "
        "elements, or in a cheaper form"
    ), False


def _costly(profile: Profile, metric: str) -> Query:
    """Select the nodes that carry the metric, without dense mathematics, compilers and collectives."""
    found = _costly_or_waiting(profile, metric)
    return Query(profile, found.mask() & ~collective_nodes(profile))


def _costly_or_waiting(profile: Profile, metric: str) -> Query:
    if metric == source_locations.GPU_TIME:
        kernels = source_locations.nodes_named(
            profile,
            FrameKind.KERNEL,
            lambda name: not any(each in name.lower() for each in _DENSE_KERNELS),
        )
        dense = source_locations.operators(profile, DENSE)
        return source_locations.without(kernels, dense)
    if metric == source_locations.DEVICE_TIME:
        products = np.zeros(len(profile.tree), np.bool_)
        for kind in (FrameKind.HLO, FrameKind.OPERATOR, FrameKind.SCOPE):
            products |= source_locations.nodes_named(profile, kind, _is_dense_hlo).mask()
        products |= source_locations.nodes_named(
            profile, FrameKind.HLO, _dense_fusions(profile)
        ).mask()
        # `jax_fusion` reports them.
        products |= at_permutations(profile)
        told = [*tall_jacobians(profile), *repeated_factorisations(profile)]
        products |= source_locations.below_findings(profile, told)
        carrying = Query(profile, profile.exclusive(metric) > 0)
        return source_locations.without(carrying, Query(profile, products))
    others = source_locations.operators(profile, lambda name: name not in DENSE)
    # Other analyzers judge the optimizer and the loader.
    mask = source_locations.apart(others).mask()
    # A dense operator's backward lies below it under other names: `mm` below AddmmBackward0. Compiling
    # inside a compiled region counts as the region's exclusive time; `recompilation` judges it.
    is_compiling = profile.tree.at_or_above(source_locations.compiling(profile).mask())
    return Query(profile, mask & ~is_compiling & (profile.exclusive(metric) > 0))


def _is_dense_hlo(name: str) -> bool:
    return any(each in name for each in ("dot", "conv_", "convolution", "gemm", "matmul"))


def _dense_fusions(profile: Profile) -> set[str]:
    """Return the names of fusions around a product, which the names may not show."""
    if not source_locations.has_jax(profile):
        return set()
    fusions = jax_operations.fusions(profile)
    dense = {each.name for each in fusions if each.is_dense}
    return dense - {each.name for each in fusions if not each.is_dense}


def _by_line_exclusive(query: Query, metric: str) -> list[source_locations.Location]:
    """Group nodes by line and name, by exclusive cost, so that dense parts below do not count.

    The longest call of a node counts as long as the mean of its others.
    """
    profile = query.profile
    nodes = query.nodes()
    if not len(nodes):
        return []
    owner = source_locations.climb(profile, nodes, profile.is_user_code())
    frames = profile.frames
    # By file and line: a recursive function's line is one location, whatever its depth.
    line_of_frame = source_locations.line_numbers(profile)
    line = np.where(owner == NO_NODE, 0, line_of_frame[profile.tree.frame[owner]])
    least = _LEAST_SHARE * total(profile, metric)
    # An operator of a line takes no more than the whole line, so that few nodes have to be sorted.
    of_line = sums(line, profile.exclusive(metric)[nodes], int(line.max()) + 1)
    is_costly = (of_line >= least)[line]
    if not is_costly.any():
        return []
    nodes, owner, line = nodes[is_costly], owner[is_costly], line[is_costly]
    name = frames.name[profile.tree.frame[nodes]]
    _, inverse = np.unique(line * len(frames.strings) + name, return_inverse=True)
    spent = profile.exclusive(metric)
    if metric == HOST_TIME_NS.name:
        spent = np.maximum(spent - first_calls(profile, query.mask()), 0)
    value = sums(inverse, spent[nodes], int(inverse.max()) + 1)
    found = []
    for index in np.flatnonzero(value >= least).tolist():
        members = np.flatnonzero(inverse == index)
        members = members[np.argsort(-spent[nodes[members]], kind="stable")]
        top = int(owner[members[0]])
        frame = None if top == NO_NODE else profile.frame(top)
        ids = tuple(nodes[members].tolist())
        found.append(source_locations.Location(frame, ids, int(value[index]), len(ids)))
    return sorted(found, key=lambda location: (-location.value, location.nodes))


ANALYZER = Analyzer("hotspot", "does one line take much of the time?", _find, names_place_only=True)
