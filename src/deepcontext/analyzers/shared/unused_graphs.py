"""Modules that run with gradients enabled while no backward uses their graph: evaluation, inference.

With gradients enabled, a module whose parameters require gradients keeps the input of most of its layers
for a backward; without, it holds the input and the result of a layer. Whether an operator built a graph is
recorded. Invariant: a module with a backward below it, in this profile, is never named; nor is any where
backwards are not linked to their forwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import BUILT_GRAPH, CALL_DURATION_NS
from deepcontext.profiler.model.grouping import sums
from deepcontext.profiler.model.metric_values import counts_or_zeros, exclusive_or_zeros
from deepcontext.profiler.model.tree import NO_NODE

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

# Of all memory at the peak, and in bytes, held for the graph alone.
_LEAST_SHARE: Final = 0.25
_LEAST_BYTES: Final = 16 << 20
_MOST_UNLINKED: Final = 0.1
# Part of the names of autograd's nodes: AddmmBackward0, CompiledFunctionBackward.
_MADE: Final = "Backward"
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
    if BUILT_GRAPH.name not in profile.metrics or not links_backwards(profile):
        return []
    graphs = _graphs(profile, prefix, max(_LEAST_BYTES, _LEAST_SHARE * peak))
    return [_finding(profile, prefix, graph, peak) for graph in graphs]


def links_backwards(profile: Profile) -> bool:
    """Return whether most nodes of autograd that ran are below the forward operator that made them.

    What adds up gradients, and what a call of `backward` does itself, has no forward operator.
    """
    tree = profile.tree
    is_operator = profile.is_kind(FrameKind.OPERATOR)
    is_forward = (is_operator & (tree.phase != Phase.BACKWARD)) | profile.is_kind(FrameKind.MODULE)
    made = source_locations.nodes_named(profile, FrameKind.OPERATOR, lambda name: _MADE in name)
    backward = made.mask() & (tree.phase == Phase.BACKWARD)
    outermost = np.flatnonzero(backward & ~tree.below(backward))
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)[outermost]
    unlinked = calls[~tree.below(is_forward)[outermost]].sum()
    return bool(unlinked <= _MOST_UNLINKED * calls.sum())


def _graphs(profile: Profile, prefix: str, least: float) -> list[_Graph]:
    """Return the modules of each calling line whose graph holds at least `least` bytes at the peak."""
    tree, frames = profile.tree, profile.frames
    held = profile.inclusive(f"{prefix}peak_bytes")
    modules = profile.once(_called_modules, lambda: _called_modules(profile))
    is_user = profile.is_user_code()
    line = frames.source_line()[tree.frame[source_locations.climb(profile, modules, is_user)]]
    found = []
    # A graph holds no more than all of its modules, and few lines hold that much.
    lines, of_module = np.unique(line, return_inverse=True)
    for number in np.flatnonzero(sums(of_module, held[modules], len(lines)) >= least).tolist():
        members = modules[of_module == number]
        members = members[np.argsort(-held[members], kind="stable")]
        held_bytes = _held_by_graph(profile, prefix, members)
        if held_bytes >= least:
            found.append(_Graph(tuple(members.tolist()), held_bytes))
    return sorted(found, key=lambda graph: -graph.held_bytes)


def _called_modules(profile: Profile) -> source_locations.Ints:
    """Return the outermost modules that a program calls whose graph has no backward."""
    tree = profile.tree
    modules = profile.is_kind(FrameKind.MODULE)
    outermost = tree.outermost(modules)
    outermost = outermost[~tree.at_or_above(tree.phase == Phase.BACKWARD)[outermost]]
    builds = tree.at_or_above(counts_or_zeros(profile, BUILT_GRAPH.name) > 0)
    owner = source_locations.climb(profile, outermost, profile.is_user_code())
    return np.asarray(outermost[builds[outermost] & (owner != NO_NODE)], np.int64)


def _held_by_graph(profile: Profile, prefix: str, modules: source_locations.Ints) -> int:
    """Return the bytes that modules hold at the peak beyond what they would hold without a graph.

    Without a graph, a program may still keep the results of one layer of all calls, and the layer that runs
    holds its input.
    """
    tree = profile.tree
    held = exclusive_or_zeros(profile, f"{prefix}peak_bytes")
    is_inside = np.zeros(len(tree), np.bool_)
    for module in modules.tolist():
        is_inside[module : int(tree.subtree_end[module])] = True
    layers = tree.nearest(profile.is_kind(FrameKind.MODULE))[is_inside]
    _, of_node = np.unique(layers, return_inverse=True)
    of_layers = sums(of_node, held[is_inside], int(of_node.max(initial=-1)) + 1)
    return int(of_layers.sum() - of_layers.max(initial=0) - _largest(profile, prefix, is_inside))


def _largest(profile: Profile, prefix: str, is_inside: source_locations.Mask) -> int:
    """Return the bytes of the largest allocation of some nodes."""
    rows = profile.metrics[f"{prefix}alloc_bytes"]
    most = rows.total if rows.maximum is None else rows.maximum
    return int(most[is_inside[rows.node]].max(initial=0))


def _finding(profile: Profile, prefix: str, graph: _Graph, peak: int) -> Finding:
    owner = source_locations.climb(profile, np.array(graph.nodes[:1]), profile.is_user_code())
    where = source_locations.location_text(profile, profile.frame(int(owner[0])))
    name = profile.frame(graph.nodes[0]).name
    share = min(graph.held_bytes / peak, 1.0)
    metric = f"{prefix}peak_bytes"
    return Finding(
        id="memory",
        severity=Severity.HIGH if share >= _HIGH_SHARE else Severity.WARNING,
        title=(
            f"{name}, called at {where} with gradients enabled, keeps a graph that no backward uses: "
            f"{share:.0%} of the {'device ' if prefix else ''}memory at the peak"
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
