"""Reduce a tree to its visible part, and return it as columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.views.layers import Layer
from tests.ui.oracle.answers import FunctionColumns
from tests.ui.oracle.functions import NO_FRAME

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.model.tree import Tree
    from tests.ui.oracle.difference import Difference
    from tests.ui.oracle.functions import FunctionTable

    Ints = npt.NDArray[np.int64]

LEAST_PX: Final = 0.5
# Looked up thousands of times in an answer, so the labels are computed once.
_KINDS: Final = {kind: kind.label for kind in FrameKind}
_LAYERS: Final = {int(layer): layer.label for layer in Layer}
# With every column, an answer then stays below 200 kB on the wire (`benchmarks/web_ui.py`).
MOST_NODES: Final = 6_000
# Trees with at most this many nodes are sent whole, so that zooming needs no further request.
FEW_NODES: Final = 1_500


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """The kept part of a tree.

    Attributes:
        nodes: ids of the nodes kept, ascending, the ancestors of the zoomed node first.
        above: number of these ancestors.
        left_out: number of nodes with a cost that are not kept.
        threshold: smallest value kept.
    """

    nodes: Ints
    above: int
    left_out: int
    threshold: int


def cut(tree: Tree, inclusive: Ints, root: int, px: int, most: int = MOST_NODES) -> Cut:
    """Keep the nodes at and below `root` that are at least half a pixel wide.

    Args:
        tree: the tree.
        inclusive: value of each node with its descendants, shape (nodes,), int64, none negative.
        root: node that fills the width.
        px: the width in pixels.
        most: maximum number of nodes kept; the narrowest nodes are removed first.
    """
    end = int(tree.subtree_end[root])
    values = inclusive[root:end]
    threshold = max(int(np.ceil(values[0] * LEAST_PX / px)), 1)
    # No child is wider than its parent, so the ancestors of a kept node are kept too.
    if np.count_nonzero(values) <= FEW_NODES:
        threshold = 1
    elif np.count_nonzero(values >= threshold) > most:
        threshold = int(np.partition(values, len(values) - most)[len(values) - most]) + 1
    kept = root + np.flatnonzero(values >= threshold)
    if not len(kept) or kept[0] != root:
        kept = np.append(root, kept)
    above = np.array(tree.path(root)[:-1], np.int64)
    left_out = int(np.count_nonzero(values > 0)) - len(kept)
    return Cut(np.append(above, kept), len(above), max(left_out, 0), threshold)


def function_columns(
    functions: FunctionTable, used: npt.NDArray[np.integer[Any]]
) -> tuple[FunctionColumns, list[int]]:
    """Return the functions of the nodes, and for each node the index of its function.

    Args:
        functions: all functions.
        used: function of each node, shape (nodes,).
    """
    distinct, index = np.unique(used, return_inverse=True)
    frames = [functions.frame(each) for each in distinct.tolist()]
    columns = FunctionColumns(
        id=functions.example[distinct].tolist(),
        name=[frame.name for frame in frames],
        kind=[_KINDS[frame.kind] for frame in frames],
        layer=[_LAYERS[each] for each in functions.layer[distinct].tolist()],
        file=[frame.file for frame in frames],
        line=[frame.line for frame in frames],
        library=functions.is_library[distinct].tolist(),
    )
    return columns, np.ravel(index).tolist()


def difference_columns(
    both: Difference, used: npt.NDArray[np.integer[Any]]
) -> tuple[FunctionColumns, list[int]]:
    """Return the same for a difference; `id` is a frame of the last profile, -1 without one."""
    distinct, index = np.unique(used, return_inverse=True)
    sides = [both.functions[each] for each in distinct.tolist()]
    frames = [side.functions.frame(number) for side, number in sides]
    columns = FunctionColumns(
        id=[
            int(side.functions.example[number]) if side is both.views[-1] else NO_FRAME
            for side, number in sides
        ],
        name=[frame.name for frame in frames],
        kind=[_KINDS[frame.kind] for frame in frames],
        layer=[_LAYERS[side.functions.layer[number]] for side, number in sides],
        file=[frame.file for frame in frames],
        line=[frame.line for frame in frames],
        library=[bool(side.functions.is_library[number]) for side, number in sides],
    )
    return columns, np.ravel(index).tolist()
