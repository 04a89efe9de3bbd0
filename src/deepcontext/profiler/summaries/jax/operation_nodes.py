"""The nodes of a tree that are operations of compiled JAX programs.

The tree has an operation by its name. Programs may share names, so the frames above a node say of which
program it is, where they are known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.summaries.jax.operations import fusions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.profile_model import ProfileModel as Profile
    from deepcontext.profiler.summaries.jax.operations import Operation


def nodes_of(profile: Profile, found: Sequence[Operation]) -> list[list[int]]:
    """Return the nodes of each operation: those in its own program if that is known, else all of its name."""
    frames, tree = profile.frames, profile.tree
    of_name: dict[str, list[int]] = {each.name: [] for each in found}
    of_kind = np.flatnonzero(np.isin(frames.kind[tree.frame], (FrameKind.HLO, FrameKind.KERNEL)))
    for node in of_kind.tolist():
        name = frames.strings[int(frames.name[tree.frame[node]])]
        if name in of_name:
            of_name[name].append(node)
    above = _Above(profile)

    def own(each: Operation) -> list[int]:
        names = {each.program, f"jit({each.program.removeprefix('jit_')})"}
        nodes = of_name[each.name]
        return [node for node in nodes if not names.isdisjoint(above.names(node))] or nodes

    return [own(each) for each in found]


def fusions_of_nodes(profile: Profile) -> dict[int, Operation]:
    """Return the fusion of each node that is one; none where the node may be of several programs.

    Raises:
        ProfileDataError: the section "jax" cannot be read.
    """
    found = fusions(profile)
    of_node: dict[int, list[Operation]] = {}
    for each, nodes in zip(found, nodes_of(profile, found), strict=True):
        for node in nodes:
            of_node.setdefault(node, []).append(each)
    return {node: those[0] for node, those in of_node.items() if len(those) == 1}


class _Above:
    """The names above nodes; siblings share a set, because a program has many operations."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._known: dict[int, frozenset[str]] = {}

    def names(self, node: int) -> frozenset[str]:
        """Return the names of the frames above a node."""
        parent = int(self._profile.tree.parent[node])
        if parent not in self._known:
            path = self._profile.tree.path(parent)
            self._known[parent] = frozenset(self._profile.frame(each).name for each in path)
        return self._known[parent]
