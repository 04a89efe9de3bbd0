"""Choose which call paths of a tree to show, and fold them into readable rows.

Does not print. A row is a chain of nodes without shown branches, so paths of forty frames become a
few rows of indentation. Invariant: nodes left out by folding and pruning are counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.model.profile import Profile

    Mask = npt.NDArray[np.bool_]
    Ints = npt.NDArray[np.integer[Any]]

_THRESHOLDS: Final = (0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2)


@dataclass(frozen=True, slots=True)
class PathRow:
    """A chain of nodes, each the only shown child of the node before.

    Attributes:
        nodes: node ids from top to bottom.
        rails: for each level of indentation, whether more rows follow on this level; the last entry
            is the row's level. Empty for a row at the left edge.
    """

    nodes: tuple[int, ...]
    rails: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class PathTree:
    """Rows in the order of the tree, largest first among siblings.

    Attributes:
        rows: the rows to show.
        hidden_nodes: number of nodes with an exclusive value that are not shown.
        hidden_value: sum of these values, in the metric's unit.
        threshold: smallest share of the total that is shown; 0.0 where no threshold was used.
    """

    rows: tuple[PathRow, ...]
    hidden_nodes: int
    hidden_value: int
    threshold: float


def inclusive_paths(profile: Profile, metric: str, most_rows: int) -> PathTree:
    """Show every node above a share of the total.

    The share is the lowest threshold that gives at most `most_rows` rows, or else the highest.
    """
    exclusive, inclusive = profile.exclusive(metric), profile.inclusive(metric)
    total = int(inclusive[0])
    tree = PathTree((), 0, 0, 0.0)
    if total <= 0:
        return tree
    for threshold in _THRESHOLDS:
        least = max(1, round(threshold * total))
        shown = np.asarray(inclusive >= least)
        ends = np.asarray(shown & (exclusive >= least))
        tree = _fold(profile, metric, shown, ends, threshold)
        if len(tree.rows) <= most_rows:
            break
    return tree


def exclusive_paths(profile: Profile, metric: str, limit: int) -> PathTree:
    """Show the paths to the `limit` nodes with the largest exclusive values."""
    exclusive = profile.exclusive(metric)
    least = 1
    if 0 < limit < len(exclusive):  # sort no more than those that may be shown
        least = max(least, int(np.partition(exclusive, -limit)[-limit]))
    candidates = np.flatnonzero(exclusive >= least)
    largest = candidates[np.argsort(-exclusive[candidates], kind="stable")][:limit]
    ends = np.zeros(len(exclusive), np.bool_)
    ends[largest] = True
    # A node is on the path to an end exactly when its subtree holds an end.
    shown = np.asarray(profile.tree.inclusive(ends.astype(np.int64)) > 0)
    return _fold(profile, metric, shown, ends, 0.0)


def _fold(profile: Profile, metric: str, shown: Mask, ends: Mask, threshold: float) -> PathTree:
    """Make rows of the nodes in `shown`; a row ends at a node in `ends`, a fork or a leaf."""
    exclusive, inclusive = profile.exclusive(metric), profile.inclusive(metric)
    children = _children(profile, shown, inclusive)
    loss = threshold * int(inclusive[0])
    rows: list[PathRow] = []
    # The root carries no information; its children are the rows at the left edge.
    pending: list[tuple[int, tuple[bool, ...]]] = [
        (child, ()) for child in reversed(children.get(0, []))
    ]
    while pending:
        node, rails = pending.pop()
        chain = [node]
        while len(below := children.get(chain[-1], [])) == 1 and not ends[chain[-1]]:
            if threshold and inclusive[chain[-1]] - inclusive[below[0]] > loss:
                break
            chain.append(below[0])
        rows.append(PathRow(tuple(chain), rails))
        last = below[-1] if below else None
        pending.extend((child, (*rails, child != last)) for child in reversed(below))
    hidden = ~shown & (exclusive != 0)
    return PathTree(
        tuple(rows), int(np.count_nonzero(hidden)), int(exclusive[hidden].sum()), threshold
    )


def _children(profile: Profile, shown: Mask, inclusive: Ints) -> dict[int, list[int]]:
    """Return the shown children of each shown node, the largest first."""
    nodes = np.flatnonzero(shown)
    nodes = nodes[nodes > 0]
    nodes = nodes[np.argsort(-inclusive[nodes], kind="stable")]
    children: dict[int, list[int]] = {}
    for node, parent in zip(nodes.tolist(), profile.tree.parent[nodes].tolist(), strict=True):
        children.setdefault(parent, []).append(node)
    return children
