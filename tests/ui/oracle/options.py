"""The options of a view of the tree, as one hashable value.

Does not build the view (`top_down.py`, `bottom_up.py`). Ids in edits are the profile's node and
frame ids, so they keep their meaning whatever a view leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias, get_args

from deepcontext.errors import QueryError
from deepcontext.profiler.format.frame import Phase  # noqa: TC001  a field's type, read at run time
from deepcontext.profiler.views.layers import Layer  # noqa: TC001  the same

EditKind: TypeAlias = Literal["focus", "root", "hide", "collapse", "drop"]
EDITS: Final[tuple[str, ...]] = get_args(EditKind)


@dataclass(frozen=True, slots=True)
class Edit:
    """One change that a user made to the tree.

    Attributes:
        kind: ``focus`` keeps the target function and everything below it, ``root`` keeps the
            subtree of one node, ``hide`` merges the function into its callers, ``collapse`` merges
            its callees into it, ``drop`` removes the function and its cost.
        target: node id for ``root``, otherwise the id of any frame of the function.
    """

    kind: EditKind
    target: int

    @classmethod
    def parse(cls, text: str) -> Edit:
        """Read an edit such as ``hide:17``.

        Raises:
            QueryError: the text is not an edit.
        """
        kind, _, target = text.partition(":")
        if kind not in EDITS or not target.isdecimal():
            raise QueryError(
                f"cannot read the edit '{text}'; expected one of {', '.join(EDITS)}, a colon and "
                "the number of a node or frame"
            )
        return cls(next(each for each in get_args(EditKind) if each == kind), int(target))

    def __str__(self) -> str:
        return f"{self.kind}:{self.target}"


@dataclass(frozen=True, slots=True)
class TreeOptions:
    """Which frames of a profile a view shows, and which costs it counts.

    Attributes:
        hidden: layers to leave out; their cost goes to the nearest frame shown.
        library: show Python frames outside user code.
        by_line: separate the lines of a Python function.
        phase: count the cost of this phase only; None counts all phases.
        pivot: what the first level shows: ``thread``, ``none``, ``phase``, or the name of
            another dimension (`pivot.py`).
        edits: changes in the order they were made.
    """

    hidden: frozenset[Layer] = frozenset()
    library: bool = False
    by_line: bool = False
    phase: Phase | None = None
    pivot: str = "thread"
    edits: tuple[Edit, ...] = ()

    def shape(self) -> TreeOptions:
        """Return the options that decide the shape of the tree: all except the counted phase."""
        return replace(self, phase=None)
