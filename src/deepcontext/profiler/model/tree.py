"""The shape of a calling context tree, as columns in depth-first pre-order.

Does not hold frames or metric values (`frame_table.py`, `metric.py`).
Invariant: node ids are pre-order indices, so the subtree of `n` is the slice
`[n, subtree_end[n])` and a sum over every subtree is one prefix sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

# Node ids are int32 in memory and in the file.
MAX_NODES = 2**31 - 1
NO_NODE = -1
# Up to this number, subtrees are marked one by one, which is faster than a pass over all nodes.
_FEW_SUBTREES = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Columns of a tree, one row a node, all of shape (nodes,).

    Attributes:
        parent: id of the parent, int32; `NO_NODE` for the root, which is node 0.
        frame: index into the frame table, uint32.
        phase: `Phase` of the node, uint8.
        depth: distance from the root, int32.
        subtree_end: one past the last node of the subtree, int32.
    """

    parent: npt.NDArray[np.int32]
    frame: npt.NDArray[np.uint32]
    phase: npt.NDArray[np.uint8]
    depth: npt.NDArray[np.int32]
    subtree_end: npt.NDArray[np.int32]

    @classmethod
    def from_parents(
        cls,
        parent: npt.NDArray[np.integer[Any]],
        frame: npt.NDArray[np.integer[Any]],
        phase: npt.NDArray[np.integer[Any]],
    ) -> tuple[Tree, npt.NDArray[np.intp]]:
        """Reorder creation-order columns into pre-order; children keep their creation order.

        Args:
            parent: parent of each node, shape (nodes,); a parent precedes its children, node 0 is
                the root and its entry is ignored.
            frame: index into the frame table, shape (nodes,).
            phase: `Phase` of each node, shape (nodes,).

        Returns:
            The tree, and `order` of shape (nodes,) with `order[new_id] = old_id`.

        Raises:
            ValueError: the columns differ in length, are empty, or a parent does not precede its
                child.
        """
        parents = _checked_parents(parent, frame, phase)
        size = _subtree_sizes(parents)
        position = _preorder_positions(parents, size)
        order = np.empty(len(parents), np.intp)
        order[position] = np.arange(len(parents))
        new_parent = position[parents[order]]
        new_parent[0] = NO_NODE
        tree = cls.from_preorder(
            parent=new_parent.astype(np.int32),
            frame=np.asarray(frame)[order].astype(np.uint32),
            phase=np.asarray(phase)[order].astype(np.uint8),
            subtree_end=(np.arange(len(order)) + size[order]).astype(np.int32),
        )
        return tree, order

    @classmethod
    def from_preorder(
        cls,
        parent: npt.NDArray[np.int32],
        frame: npt.NDArray[np.uint32],
        phase: npt.NDArray[np.uint8],
        subtree_end: npt.NDArray[np.int32],
    ) -> Tree:
        """Make a tree from columns that are in pre-order already; the class describes them.

        Raises:
            ValueError: the columns are not in pre-order; the message names column and row. Frame
                indices are not checked, because the frame table is not known here.
        """
        fault = _find_fault(parent, subtree_end)
        if fault is not None:
            raise ValueError(fault)
        depth = _depth(subtree_end)
        # Every subtree lies inside its parent's, so a node's ancestors are among the subtrees that are
        # open where it begins. Their number tells whether there are others.
        bad = depth[1:] != depth.take(parent[1:]) + 1
        if bad.any():
            raise ValueError(_wrong_sizes(parent, subtree_end))
        return cls(parent, frame, phase, depth, subtree_end)

    def __len__(self) -> int:
        return len(self.parent)

    def path(self, node: int) -> tuple[int, ...]:
        """Return the node ids from the root down to `node`, both included."""
        path = []
        while node != NO_NODE:
            path.append(node)
            node = int(self.parent[node])
        return tuple(reversed(path))

    def children(self, node: int) -> Iterator[int]:
        """Yield the ids of the children of `node` in pre-order."""
        end = int(self.subtree_end[node])
        child = node + 1
        while child < end:
            yield child
            child = int(self.subtree_end[child])

    def inclusive(self, exclusive: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Sum a value over every subtree.

        Args:
            exclusive: value of each node alone, shape (nodes,), int64.

        Returns:
            Value of each node with its descendants, shape (nodes,), int64; exact.
        """
        prefix = np.zeros(len(self) + 1, np.int64)
        np.cumsum(exclusive, out=prefix[1:])
        return prefix.take(self.subtree_end) - prefix[:-1]

    def inclusive_maximum(self, exclusive: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the largest value of every subtree, shape (nodes,), int64.

        Uses a sparse table, one power of two at a time: O(nodes log nodes) for any shape of tree.
        A walk up level by level would cost one pass a level.
        """
        starts = np.arange(len(self))
        size = self.subtree_end - starts
        # frexp(size) = (m, e) with size = m * 2**e and 0.5 <= m < 1, so e - 1 = floor(log2(size)).
        exponent = (np.frexp(size.astype(np.float64))[1] - 1).astype(np.uint8)
        result = np.empty(len(self), np.int64)
        # Sorting bytes is fast; new memory for each power would cost more than the comparisons.
        order = np.argsort(exponent, kind="stable")
        ends = np.cumsum(np.bincount(exponent))
        window, other = exclusive, np.empty(len(self), np.int64)
        spare = np.empty(len(self), np.int64)
        for power, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            step = 1 << power
            nodes = order[begin:end]
            result[nodes] = np.maximum(window[nodes], window[self.subtree_end[nodes] - step])
            length = max(len(window) - step, 0)
            np.maximum(window[:length], window[step : step + length], out=other[:length])
            window, other, spare = other[:length], spare, other
        return result

    def outermost(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
        """Return the nodes of `mask` without an ancestor in it, ascending; their subtrees are disjoint.

        Args:
            mask: nodes to look at, shape (nodes,).
        """
        nodes = np.flatnonzero(mask)
        # In pre-order, a node of the mask is outermost if all earlier subtrees have ended where it
        # begins.
        is_outermost = np.ones(len(nodes), np.bool_)
        is_outermost[1:] = nodes[1:] >= np.maximum.accumulate(self.subtree_end[nodes])[:-1]
        return nodes[is_outermost]

    def below(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return which nodes have a proper ancestor in `mask`; both of shape (nodes,)."""
        nodes = self.outermost(mask)
        ends = self.subtree_end[nodes]
        has_children = ends > nodes + 1
        nodes, ends = nodes[has_children], ends[has_children]
        inside = np.zeros(len(self), np.bool_)
        if len(nodes) <= _FEW_SUBTREES:
            for first, end in zip((nodes + 1).tolist(), ends.tolist(), strict=True):
                inside[first:end] = True
            return inside
        change = np.zeros(len(self) + 1, np.int8)
        change[nodes + 1] = 1
        change[ends] = -1
        np.cumsum(change[:-1], dtype=np.int8, out=inside.view(np.int8))
        return inside

    def at_or_above(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return which nodes are in `mask` or above a node in it; both of shape (nodes,)."""
        before = np.zeros(len(self) + 1, np.int32)
        if mask.any():
            np.cumsum(mask, dtype=np.int32, out=before[1:])
        return before.take(self.subtree_end) > before[:-1]

    def at_or_below(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return which nodes are in `mask` or below a node in it; both of shape (nodes,)."""
        return mask | self.below(mask)

    def nearest(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
        """Return for each node the nearest of itself and its ancestors that is in `mask`.

        Args:
            mask: nodes to look for, shape (nodes,), bool.

        Returns:
            Node ids, shape (nodes,), `NO_NODE` where there is none.
        """
        # One slot past the end stands for "none"; index -1, the root's parent, reaches it.
        jump = np.append(np.where(mask, np.arange(len(self)), self.parent), NO_NODE)
        while True:
            further = jump[jump]
            if np.array_equal(further, jump):
                return jump[:-1]
            jump = further


def _find_fault(parent: npt.NDArray[np.int32], subtree_end: npt.NDArray[np.int32]) -> str | None:
    """Return the first row that breaks the pre-order, or None; linear and vectorised."""
    if not len(parent) or parent[0] != NO_NODE:
        return "'parent' row 0: the first node must be the root, whose parent is -1"
    nodes = np.arange(len(parent), dtype=np.int32)
    child = nodes[1:]
    bad = (parent[1:] < 0) | (parent[1:] >= child)
    if bad.any():
        return _fault("parent", child, bad, "a parent must precede its child")
    bad = subtree_end <= nodes
    if bad.any() or subtree_end[0] != len(nodes):
        return _wrong_sizes(parent, subtree_end)
    bad = subtree_end[1:] > subtree_end.take(parent[1:])
    if bad.any():
        return _fault("subtree_end", child, bad, "must not pass the end of the parent's subtree")
    return None


def _depth(subtree_end: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return for each node how many subtrees of earlier nodes are open where it begins."""
    count = len(subtree_end)
    opened = np.ones(count, np.int64)
    opened[0] = 0
    return np.cumsum(opened - np.bincount(subtree_end, minlength=count)[:count], dtype=np.int32)


def _wrong_sizes(parent: npt.NDArray[np.int32], subtree_end: npt.NDArray[np.int32]) -> str:
    """Return the first row whose subtree has a wrong size, for columns that have one."""
    nodes = np.arange(len(parent))
    size = subtree_end - nodes
    # Each node is counted once at its parent, so only the correct sizes satisfy this.
    bad = size != 1 + np.bincount(parent[1:], weights=size[1:], minlength=len(nodes))
    return _fault("subtree_end", nodes, bad, "must count the node and its descendants")


def _fault(
    column: str, rows: npt.NDArray[np.integer[Any]], bad: npt.NDArray[np.bool_], rule: str
) -> str:
    return f"'{column}' row {rows[np.argmax(bad)]}: {rule}"


def _checked_parents(
    parent: npt.NDArray[np.integer[Any]],
    frame: npt.NDArray[np.integer[Any]],
    phase: npt.NDArray[np.integer[Any]],
) -> npt.NDArray[np.intp]:
    if not 0 < len(parent) <= MAX_NODES or not len(parent) == len(frame) == len(phase):
        raise ValueError(
            f"tree columns must have one row a node, found {len(parent)} parents, "
            f"{len(frame)} frames, {len(phase)} phases"
        )
    parents = np.asarray(parent).astype(np.intp)
    parents[0] = 0
    bad = (parents[1:] < 0) | (parents[1:] >= np.arange(1, len(parents)))
    if bad.any():
        node = 1 + int(np.argmax(bad))
        raise ValueError(f"parent {parents[node]} of node {node} does not precede it")
    return parents


def _subtree_sizes(parents: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Count the nodes of every subtree by pointer doubling: one round a power of two of depth."""
    nodes = len(parents)
    # Slot `nodes` stands for "above the root": its ancestor is itself and its size is 0.
    ancestor = np.append(parents, nodes)
    ancestor[0] = nodes
    size = np.ones(nodes + 1, np.intp)
    size[nodes] = 0
    while (ancestor[:-1] != nodes).any():
        # bincount adds in float64, exact up to 2**53 nodes, and is much faster than np.add.at.
        size += np.bincount(ancestor, weights=size, minlength=nodes + 1).astype(np.intp)
        size[nodes] = 0
        ancestor = ancestor[ancestor]
    return size[:-1]


def _preorder_positions(
    parents: npt.NDArray[np.intp], size: npt.NDArray[np.intp]
) -> npt.NDArray[np.intp]:
    """Return the pre-order index of each node: offsets summed, by pointer doubling, up its path."""
    siblings = np.argsort(parents[1:], kind="stable") + 1
    group = parents[siblings]
    before = np.cumsum(size[siblings]) - size[siblings]
    is_first = np.ones(len(group), np.bool_)
    is_first[1:] = group[1:] != group[:-1]
    first = np.flatnonzero(is_first)
    position = np.zeros(len(parents), np.intp)
    position[siblings] = 1 + before - before[first][np.cumsum(is_first) - 1]
    ancestor = parents.copy()
    while ancestor.any():
        position += position[ancestor]
        ancestor = ancestor[ancestor]
    return position
