"""Two profiles in one tree: each node has a value before and a value after.

Functions are the same when kind, name and file agree; files are compared relative to the run's
working directory. Invariant: the root's inclusive value on each side is that profile's total.
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
    from collections.abc import Iterator

    from deepcontext.profiler.model.tree import Tree
    from tests.ui.oracle.merge import Ints
    from tests.ui.oracle.top_down import TopDown


class Difference:
    """The trees of two views merged into one.

    Attributes:
        before: view of the first profile.
        after: view of the second profile, made with the same options.
        tree: the merged shape; `tree.frame` indexes into `functions`.
        functions: for each function the view that describes it (the second where both have it),
            and its number in that view.
    """

    def __init__(self, before: TopDown, after: TopDown) -> None:
        self.before = before
        self.after = after
        numbers: dict[tuple[FrameKind, str, str, int], int] = {}
        functions: list[tuple[TopDown, int]] = []
        columns = []
        for view in (before, after):
            column = np.empty(len(view.functions), np.int64)
            for index, identity in enumerate(_identities(view)):
                if identity not in numbers:
                    numbers[identity] = len(functions)
                    functions.append((view, index))
                functions[numbers[identity]] = (view, index)
                column[index] = numbers[identity]
            columns.append(column[view.tree.frame])
        self.functions: tuple[tuple[TopDown, int], ...] = tuple(functions)
        # The two roots become one, so each other node of the second tree moves up by one index.
        offset = len(before.tree) - 1
        above = after.tree.parent[1:].astype(np.int64)
        parent = np.append(
            np.maximum(before.tree.parent, 0), np.where(above > 0, above + offset, 0)
        )
        merged = merge(parent.astype(np.int64), np.append(columns[0], columns[1][1:]))
        self.tree: Tree = merged.tree
        self._of_before: Ints = merged.of_entry[: len(before.tree)]
        self._of_after: Ints = np.append(0, merged.of_entry[len(before.tree) :])

    def exclusive(self, before: Ints, after: Ints) -> tuple[Ints, Ints]:
        """Return the exclusive costs of both sides, shape (nodes,) each, int64.

        Args:
            before: exclusive cost of each node of the first profile.
            after: exclusive cost of each node of the second profile.
        """
        return (
            sums(self._of_before, self.before.exclusive(before), len(self.tree)),
            sums(self._of_after, self.after.exclusive(after), len(self.tree)),
        )

    def sources(self) -> tuple[Ints, Ints]:
        """Return the node of each profile that represents a node, or `OUTSIDE`, shape (nodes,)."""
        columns = []
        for view, nodes in ((self.before, self._of_before), (self.after, self._of_after)):
            column = np.full(len(self.tree), OUTSIDE)
            column[nodes] = view.source
            columns.append(column)
        return columns[0], columns[1]


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
