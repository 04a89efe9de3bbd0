"""Merge siblings that are the same function, from the root down.

Does not know metrics, nor what a view shows (`top_down.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepcontext.profiler.model.tree import Tree

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Merged:
    """A tree of functions.

    Attributes:
        tree: the shape; `tree.frame` is the function of each node.
        of_entry: node of each entry, shape (entries,), int64.
        first: the first entry of each node, shape (nodes,), int64.
    """

    tree: Tree
    of_entry: Ints
    first: Ints


def merge(parent: Ints, function: Ints) -> Merged:
    """Make a tree in which no two siblings are the same function.

    Args:
        parent: parent of each entry, shape (entries,); a parent precedes its children, entry 0 is
            the root.
        function: function of each entry, shape (entries,).

    Returns:
        The tree; children are in the order of their first entry.
    """
    levels = _levels(parent)
    of_entry = np.zeros(len(parent), np.int64)
    parents, functions, firsts = [np.zeros(1, np.int64)], [function[:1]], [np.zeros(1, np.int64)]
    made = 1
    width = int(function.max(initial=0)) + 1
    for entries in levels[1:]:
        # One number for each pair of parent node and function; both fit into 31 bits.
        pair = of_entry[parent[entries]] * width + function[entries]
        _, first, group = np.unique(pair, return_index=True, return_inverse=True)
        by_appearance = np.argsort(first)
        number = np.empty(len(first), np.int64)
        number[by_appearance] = made + np.arange(len(first))
        of_entry[entries] = number[np.ravel(group)]
        example = entries[first[by_appearance]]
        parents.append(of_entry[parent[example]])
        functions.append(function[example])
        firsts.append(example)
        made += len(first)
    all_functions = np.concatenate(functions)
    tree, order = Tree.from_parents(
        np.concatenate(parents), all_functions, np.zeros(made, np.uint8)
    )
    position = np.empty(made, np.int64)
    position[order] = np.arange(made)
    return Merged(tree, position[of_entry], np.concatenate(firsts)[order])


def _levels(parent: Ints) -> list[Ints]:
    """Return the entries of each level from the root down, ascending within a level."""
    depth = _depths(parent)
    order = np.argsort(depth, kind="stable")
    return np.split(order, np.cumsum(np.bincount(depth))[:-1])


def _depths(parent: Ints) -> Ints:
    """Return the distance of each entry from entry 0, by pointer doubling."""
    depth = np.ones(len(parent), np.int64)
    depth[0] = 0
    ancestor = parent.copy()
    ancestor[0] = 0
    while ancestor.any():
        depth += depth[ancestor]
        ancestor = ancestor[ancestor]
    return depth
