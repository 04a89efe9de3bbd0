"""The inverted tree: functions, below each its callers, and so on up to the thread.

Built level by level and only down to a threshold, because in the full tree each node would occur
once for every one of its ancestors. Invariant: the values of the first level add up to the sum of
the starting values; a node's children add up to no more than the node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepcontext.profiler.model.grouping import NO_GROUP, sums, topmost
from deepcontext.profiler.model.tree import Tree

if TYPE_CHECKING:
    from tests.ui.oracle.merge import Ints


@dataclass(frozen=True, slots=True, eq=False)
class CallerTree:
    """Functions and their callers; columns of shape (nodes,).

    Attributes:
        tree: the shape; `tree.frame` is the function, meaningless for the root.
        value: cost of the starting functions reached through this chain of callers, int64.
        example: a node of the caller in the original tree; 0 for the root.
        left_out: number of chains below the threshold.
    """

    tree: Tree
    value: Ints
    example: Ints
    left_out: int


def callers(tree: Tree, start: Ints, value: Ints, threshold: int) -> CallerTree:
    """Invert the part of a tree above some nodes.

    Args:
        tree: a tree of functions.
        start: nodes to start from, ascending, without the root, shape (starts,).
        value: cost of each start, shape (starts,), int64.
        threshold: smallest cost of a node that is kept.
    """
    function = tree.frame.astype(np.int64)
    width = int(function.max(initial=0)) + 1
    parents, functions = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
    values, examples = [np.array([value.sum()])], [np.zeros(1, np.int64)]
    group, at, made, left_out = np.zeros(len(start), np.int64), start, 1, 0
    while len(at):
        pair = group * width + function[at]
        _, first, number = np.unique(pair, return_index=True, return_inverse=True)
        number = np.ravel(number)
        total = sums(number, value, len(first))
        kept = total >= max(threshold, 1)
        left_out += int(np.count_nonzero(~kept))
        # Largest first, because the order of appearance has no meaning in an inverted tree.
        order = np.flatnonzero(kept)[np.argsort(-total[kept], kind="stable")]
        new = np.full(len(first), NO_GROUP)
        new[order] = made + np.arange(len(order))
        parents.append(group[first[order]])
        functions.append(function[at[first[order]]])
        values.append(total[order])
        examples.append(at[first[order]])
        made += len(order)
        at, group = tree.parent[at].astype(np.int64), new[number]
        going = (group != NO_GROUP) & (at > 0)
        at, group, value = at[going], group[going], value[going]
    inverted, order = Tree.from_parents(
        np.concatenate(parents), np.concatenate(functions), np.zeros(made, np.uint8)
    )
    return CallerTree(
        inverted, np.concatenate(values)[order], np.concatenate(examples)[order], left_out
    )


def bottom_up(tree: Tree, exclusive: Ints, threshold: int) -> CallerTree:
    """Invert a whole tree.

    Args:
        tree: a tree of functions.
        exclusive: exclusive cost of each node, shape (nodes,), int64.
        threshold: smallest cost of a node that is kept.
    """
    start = 1 + np.flatnonzero(exclusive[1:] > 0)
    return callers(tree, start, exclusive[start], threshold)


def callers_of(tree: Tree, function: int, inclusive: Ints, threshold: int) -> CallerTree:
    """Return the callers of a function, by its inclusive cost; recursion counts once.

    Args:
        tree: a tree of functions.
        function: the function.
        inclusive: inclusive cost of each node, shape (nodes,), int64.
        threshold: smallest cost of a node that is kept.
    """
    start = outermost(tree, function)
    return callers(tree, start, inclusive[start], threshold)


def outermost(tree: Tree, function: int) -> Ints:
    """Return the nodes of a function that lie below no other node of it, ascending."""
    return np.sort(topmost(tree, np.where(tree.frame == function, 0, NO_GROUP)))
