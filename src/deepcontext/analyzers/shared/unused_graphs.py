"""Modules that run with gradients enabled while no backward uses their graph: evaluation, inference.

With gradients enabled, a module whose parameters require gradients keeps the input of most of its layers
for a backward; without, it holds the results of a layer or two. A profile does not record whether gradients
were enabled, so the graph is told by what the layers hold at the peak, and small graphs are not judged.
Invariant: a module with a backward below it, in this profile, is never named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import CALL_DURATION_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros, exclusive_or_zeros
from deepcontext.profiler.model.tree import NO_NODE

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

# Held at the peak: of all memory, in bytes, and of what one call of the module allocates.
_LEAST_SHARE: Final = 0.25
_LEAST_BYTES: Final = 64 << 20
_LEAST_OF_A_CALL: Final = 0.5
# Layers that hold memory at the peak, of those that allocate.
_FEWEST_LAYERS: Final = 4
_LEAST_OF_LAYERS: Final = 0.75
# Or what several calls allocated, in more than one layer: results are made in one.
_OF_SEVERAL_CALLS: Final = 2.0
_FEWEST_OPERATORS: Final = 3
_HIGH_SHARE: Final = 0.5


@dataclass(frozen=True, slots=True)
class _Graph:
    nodes: tuple[int, ...]
    held_bytes: int


def unused_graphs(profile: Profile, prefix: str, peak: int) -> list[Finding]:
    """Return a finding for each line that calls modules whose graph nothing uses.

    Args:
        profile: the profile.
        prefix: "" for the memory of the host, "gpu_" for that of devices.
        peak: most bytes held at once.
    """
    graphs = _graphs(profile, prefix, max(_LEAST_BYTES, _LEAST_SHARE * peak))
    return [_finding(profile, prefix, graph, peak) for graph in graphs]


def _graphs(profile: Profile, prefix: str, least: float) -> list[_Graph]:
    """Return the modules of each calling line that keep a graph of at least `least` bytes."""
    tree, frames = profile.tree, profile.frames
    held = profile.inclusive(f"{prefix}peak_bytes")
    modules = _called_modules(profile)
    is_user = frames.is_user_code()
    line = frames.source_line()[tree.frame[source_locations.climb(profile, modules, is_user)]]
    found = []
    for each in np.unique(line).tolist():
        members = modules[line == each]
        members = members[np.argsort(-held[members], kind="stable")]
        held_bytes = int(held[members].sum())
        if held_bytes >= least and _keeps_its_graph(profile, prefix, members):
            found.append(_Graph(tuple(members.tolist()), held_bytes))
    return sorted(found, key=lambda graph: -graph.held_bytes)


def _called_modules(profile: Profile) -> source_locations.Ints:
    """Return the modules that a program calls outside of modules, with a forward and no backward."""
    tree = profile.tree
    modules = profile.is_kind(FrameKind.MODULE)
    outermost = np.flatnonzero(modules & ~tree.below(modules))
    is_operator = profile.is_kind(FrameKind.OPERATOR)
    forward = tree.inclusive((is_operator & (tree.phase == Phase.FORWARD)).astype(np.int64))
    backward = tree.inclusive((tree.phase == Phase.BACKWARD).astype(np.int64))
    is_alone = (forward >= _FEWEST_OPERATORS) & (backward == 0)
    owner = source_locations.climb(profile, outermost, profile.frames.is_user_code())
    return np.asarray(outermost[is_alone[outermost] & (owner != NO_NODE)], np.int64)


def _keeps_its_graph(profile: Profile, prefix: str, modules: source_locations.Ints) -> bool:
    """Return whether most layers of the modules hold memory at the peak, most of what a call allocates."""
    tree = profile.tree
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
    allocated = _largest(profile, f"{prefix}alloc_bytes")
    held = exclusive_or_zeros(profile, f"{prefix}peak_bytes")
    layer = tree.nearest(profile.is_kind(FrameKind.MODULE))
    a_call = kept = 0.0
    allocating, holding = set[int](), set[int]()
    for module in modules.tolist():
        inside = slice(module, int(tree.subtree_end[module]))
        # An operator runs as often as its module, or a multiple where a layer is shared.
        times = np.maximum(calls[inside], 1)
        fewest = int(times[calls[inside] > 0].min(initial=1 << 62)) if calls[inside].any() else 1
        a_call += float(allocated[inside].sum()) / fewest
        kept += float(held[inside].sum())
        allocating |= set(layer[inside][allocated[inside] > 0].tolist())
        holding |= set(layer[inside][held[inside] > 0].tolist())
    if len(holding) > 1 and kept >= _OF_SEVERAL_CALLS * a_call:
        return True
    is_in_layers = len(holding) >= max(_FEWEST_LAYERS, _LEAST_OF_LAYERS * len(allocating))
    return is_in_layers and kept >= _LEAST_OF_A_CALL * a_call


def _largest(profile: Profile, metric: str) -> source_locations.Ints:
    """Return what the allocations of each node would add up to, had each been as large as the largest."""
    rows = profile.metrics[metric]
    most = rows.total if rows.maximum is None else rows.maximum * rows.count.astype(np.int64)
    found = np.zeros(len(profile.tree), np.int64)
    found[rows.node] = most
    return found


def _finding(profile: Profile, prefix: str, graph: _Graph, peak: int) -> Finding:
    owner = source_locations.climb(
        profile, np.array(graph.nodes[:1]), profile.frames.is_user_code()
    )
    where = source_locations.location_text(profile, profile.frame(int(owner[0])))
    name = profile.frame(graph.nodes[0]).name
    share = min(graph.held_bytes / peak, 1.0)
    metric = f"{prefix}peak_bytes"
    return Finding(
        id="memory",
        severity=Severity.HIGH if share >= _HIGH_SHARE else Severity.WARNING,
        title=(
            f"{name}, called at {where}, keeps a graph that no backward uses: {share:.0%} of the "
            f"{'device ' if prefix else ''}memory at the peak"
        ),
        nodes=graph.nodes[:8],
        evidence={metric: graph.held_bytes, "peak_share": share},
        gain=Gain(metric, graph.held_bytes, share, "no operator keeps its input"),
        advice=(
            "evaluate without a graph: call the module under torch.no_grad() or "
            "torch.inference_mode(); where results are collected, keep numbers (.item()) or detached "
            "tensors"
        ),
        misleads=(
            "a backward runs in a way that is not recorded, for example in code that another "
            "library compiled"
        ),
    )
