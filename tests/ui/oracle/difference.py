"""Several profiles in one tree: each node has a value of each profile that has the node.

Functions are the same when kind, name and file agree; files are compared relative to the run's
working directory. Invariant: the root's inclusive value of each profile is that profile's total.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.model.grouping import sums
from tests.ui.oracle.merge import merge
from tests.ui.oracle.top_down import OUTSIDE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deepcontext.profiler.model.tree import Tree
    from tests.ui.oracle.merge import Ints
    from tests.ui.oracle.top_down import TopDown


class Difference:
    """The trees of views merged into one.

    Attributes:
        views: a view of each profile, made with the same options.
        tree: the merged shape; `tree.frame` indexes into `functions`.
        functions: for each function the view that describes it (the last that has it), and its
            number in that view.
    """

    def __init__(self, views: Sequence[TopDown]) -> None:
        self.views = tuple(views)
        numbers: dict[tuple[FrameKind, str, str, int], int] = {}
        functions: list[tuple[TopDown, int]] = []
        columns = []
        for view in views:
            column = np.empty(len(view.functions), np.int64)
            for index, identity in enumerate(_identities(view)):
                if identity not in numbers:
                    numbers[identity] = len(functions)
                    functions.append((view, index))
                functions[numbers[identity]] = (view, index)
                column[index] = numbers[identity]
            columns.append(column[view.tree.frame])
        self.functions: tuple[tuple[TopDown, int], ...] = tuple(functions)
        # The roots become one, so each tree follows the one before without its own root.
        ends = np.cumsum([len(view.tree) - 1 for view in views])
        parents = [np.zeros(1, np.int64)]
        for view, offset in zip(views, [0, *ends[:-1]], strict=True):
            above = view.tree.parent[1:].astype(np.int64)
            parents.append(np.where(above > 0, above + offset, 0))
        frames = [columns[0][:1], *(column[1:] for column in columns)]
        merged = merge(np.concatenate(parents), np.concatenate(frames))
        self.tree: Tree = merged.tree
        self._of_view: list[Ints] = [
            np.append(0, nodes) for nodes in np.split(merged.of_entry[1:], ends[:-1])
        ]

    def exclusive(self, values: Sequence[Ints]) -> list[Ints]:
        """Return the exclusive costs of each profile, shape (nodes,) each, int64.

        Args:
            values: for each profile the exclusive cost of each of its nodes.
        """
        return [
            sums(nodes, view.exclusive(each), len(self.tree))
            for nodes, view, each in zip(self._of_view, self.views, values, strict=True)
        ]

    def nodes(self) -> list[Ints]:
        """Return the node of each view that a node stands for, or `OUTSIDE`, shape (nodes,)."""
        columns = []
        for view, nodes in zip(self.views, self._of_view, strict=True):
            column = np.full(len(self.tree), OUTSIDE)
            column[nodes] = np.arange(len(view.tree))
            columns.append(column)
        return columns


def _identities(view: TopDown) -> Iterator[tuple[FrameKind, str, str, int]]:
    folder = view.profile.run.cwd.rstrip("/") + "/"
    for index in range(len(view.functions)):
        frame = view.functions.frame(index)
        file = frame.file
        if frame.kind is FrameKind.PYTHON:
            file = file.removeprefix(folder)
        elif frame.kind is FrameKind.NATIVE:  # the same library may be installed elsewhere
            file = PurePath(file).name
        yield frame.kind, frame.name, file, frame.line
