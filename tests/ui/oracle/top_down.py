"""The tree from the root down, shaped by a view's options, with its costs.

    view = TopDown(profile, TreeOptions(hidden=frozenset({Layer.PYTHON})))
    view.inclusive("host_time_ns")[0]

Invariant: whatever a view leaves out, merges or splits, the root's inclusive value is the sum over
the profile's nodes, except dropped nodes and nodes outside the focus or the phase.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from deepcontext.errors import QueryError
from deepcontext.profiler.format.metric import CALL_DURATION_NS
from deepcontext.profiler.model.grouping import NO_GROUP, Spreads, sums
from deepcontext.profiler.model.tree import Tree
from deepcontext.profiler.summaries.phases import shown_phase
from deepcontext.profiler.views.layers import Layer
from tests.ui.oracle.functions import FunctionTable
from tests.ui.oracle.labels import NO_LABEL, labels
from tests.ui.oracle.merge import Merged, merge

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.format.frame import Phase
    from deepcontext.profiler.model.profile import Profile
    from tests.ui.oracle.labels import Labels
    from tests.ui.oracle.options import Edit, TreeOptions

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

OUTSIDE = -1


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Rows of a tree before its siblings are merged; columns of shape (entries,).

    Attributes:
        parent: entry of the parent; a parent precedes its children, entry 0 is the root.
        function: function shown.
        source: node of the profile.
        charged_to: entry that receives each node's cost, or `OUTSIDE`, shape (nodes,).
        shown_as: entry that shows the node itself, or `OUTSIDE`, shape (nodes,).
    """

    parent: Ints
    function: Ints
    source: Ints
    charged_to: Ints
    shown_as: Ints


class TopDown:
    """A tree of functions made from a profile's tree.

    Attributes:
        profile: the profile that the tree was made from.
        options: what the tree shows and counts.
        functions: the functions; `tree.frame` indexes into them.
    """

    def __init__(self, profile: Profile, options: TreeOptions) -> None:
        self.profile = profile
        self.options = options
        self.functions = FunctionTable.of_profile(profile, by_line=options.by_line)
        split = labels(profile, self.functions, options.pivot)
        entries = entries_of(profile, self.functions, options, split)
        merged: Merged = merge(entries.parent, entries.function)
        placed = Placed(
            merged.tree,
            np.zeros(len(merged.tree), np.int64),
            entries.source[merged.first],
            _compose(merged.of_entry, entries.charged_to),
            _compose(merged.of_entry, entries.shown_as),
        )
        self._placed = placed if split is None else _split(placed, split)
        # The node of the profile that represents a node of the view.
        self.first: Ints = self._placed.first
        # A node is known by this number, in which copies of one node differ.
        self.source: Ints = self.first + self._placed.label * len(profile.tree)

    @property
    def tree(self) -> Tree:
        """Return the shape."""
        return self._placed.tree

    def node_of(self, source: int) -> int:
        """Return the node that shows a node of the profile, or receives its cost.

        Raises:
            QueryError: the node does not exist or is not shown.
        """
        nodes = len(self.profile.tree)
        label, node = divmod(source, nodes)
        if label > self._placed.labels:
            raise QueryError(f"no node {source}: this profile has the nodes 0 to {nodes - 1}")
        hidden = QueryError(f"node {source} is not shown; undo a focus or a drop")
        own = int(self._placed.charged_to[node])
        if own == OUTSIDE:
            raise hidden
        if label == NO_LABEL:
            return own if node else 0
        wanted = [] if node == 0 else self._below_label(own)
        for other in np.flatnonzero(self._placed.label == label).tolist():
            if self._below_label(other) == wanted:
                return int(other)
        raise hidden

    def _below_label(self, node: int) -> list[int]:
        """Return the functions from the node's label, or the root, down to the node."""
        above = 2 if self._placed.label[node] else 1
        return [int(self.tree.frame[each]) for each in self.tree.path(node)[above:]]

    def counting(self, phase: Phase | None) -> TopDown:
        """Return the same tree with the cost of one phase only, or of all phases for None."""
        view = copy.copy(self)
        view.__dict__.pop("calls", None)
        view.options = replace(self.options, phase=phase)
        return view

    def members(self, node: int) -> Ints:
        """Return the nodes of the profile that a node represents, ascending."""
        return np.flatnonzero(self._placed.shown_as == node)

    def exclusive(self, values: Ints) -> Ints:
        """Return the exclusive cost of each node, shape (nodes,), int64.

        Args:
            values: exclusive cost of each node of the profile, shape (profile's nodes,), int64.
        """
        counted = self._is_counted()
        return sums(self._placed.charged_to[counted], values[counted], len(self.tree))

    def counted(self, values: Ints) -> Ints:
        """Return `values` with 0 for nodes that the view does not count; shapes as `exclusive`."""
        return np.where(self._is_counted(), values, 0)

    def _is_counted(self) -> Mask:
        counted: Mask = self._placed.charged_to != OUTSIDE
        if self.options.phase is not None:
            counted &= shown_phase(self.profile.tree) == self.options.phase
        return counted

    @cached_property
    def calls(self) -> Spreads | None:
        """Return the distribution of each node's calls, None where no calls were timed."""
        rows = self.profile.metrics.get(CALL_DURATION_NS.name)
        if rows is None:
            return None
        group = self._placed.shown_as[rows.node]
        if self.options.phase is not None:
            phase = shown_phase(self.profile.tree)[rows.node]
            group = np.where(phase == self.options.phase, group, NO_GROUP)
        return Spreads.of_rows(rows, group, len(self.tree))

    @cached_property
    def phase(self) -> npt.NDArray[np.uint8]:
        """Return the phase that a tree is split by, or that of the first node represented."""
        phase = self.profile.tree.phase[self.first]
        label = self._placed.label
        if self.options.pivot != "phase":
            return phase
        return np.where(label == NO_LABEL, phase, label - 1).astype(np.uint8)


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A tree without equal siblings, and where the nodes of the profile are in it.

    Attributes:
        tree: the shape.
        label: label of each node, shape (nodes of the tree,).
        first: node of the profile that represents each node, shape (nodes of the tree,).
        charged_to: node that receives each node's cost, or `OUTSIDE`, shape (nodes,).
        shown_as: node that shows the node itself, or `OUTSIDE`, shape (nodes,).
        labels: the largest label of the pivot.
    """

    tree: Tree
    label: Ints
    first: Ints
    charged_to: Ints
    shown_as: Ints
    labels: int = NO_LABEL


def entries_of(
    profile: Profile, functions: FunctionTable, options: TreeOptions, split: Labels | None
) -> Entries:
    """Leave out hidden frames; siblings may still be equal."""
    tree = profile.tree
    function = functions.of_frame[tree.frame]
    shown, counted = _selection(profile, functions, options)
    if split is not None:
        shown &= ~split.replaced[function]
    shown[0] = True
    nearest = np.where(counted, tree.nearest(shown & counted), OUTSIDE)
    # With a focus, the nearest shown frame may lie above the focus: the root replaces it.
    nearest[(nearest == OUTSIDE) & counted] = 0
    return _joined(profile, function, nearest)


def _joined(profile: Profile, function: Ints, nearest: Ints) -> Entries:
    nodes = np.arange(len(nearest))
    is_entry = nearest == nodes
    is_entry[0] = True
    source = np.flatnonzero(is_entry)
    number = np.full(len(nearest), OUTSIDE)
    number[source] = np.arange(len(source))
    charged_to = _compose(number, nearest)
    above = charged_to[profile.tree.parent[source]]
    above[0] = 0
    return Entries(
        parent=np.maximum(above, 0),
        function=function[source],
        source=source,
        charged_to=charged_to,
        shown_as=np.where(is_entry & (nearest != OUTSIDE), charged_to, OUTSIDE),
    )


def _split(whole: Placed, split: Labels) -> Placed:
    """Give each label a copy of the paths that lead to nodes with that label."""
    charged_to = np.full(len(whole.charged_to), OUTSIDE)
    shown_as = charged_to.copy()
    frame, above = whole.tree.frame.astype(np.int64), whole.tree.parent.astype(np.int64)
    parents, functions, firsts, of_copy = [], [], [], []
    made = 0
    for label, function in enumerate(split.functions.tolist()):
        labelled = (split.of_node == label) & (whole.charged_to != OUTSIDE)
        if label != NO_LABEL and not labelled.any():
            continue
        wanted = np.flatnonzero(_with_ancestors(above, whole.charged_to[labelled]))
        number = np.full(len(frame), OUTSIDE)
        number[wanted] = made + np.arange(len(wanted))
        parents += [np.zeros(1, np.int64), number[above[wanted[1:]]]]
        functions += [np.array([function]), frame[wanted[1:]]]
        firsts.append(whole.first[wanted])
        of_copy.append(np.full(len(wanted), label))
        made += len(wanted)
        charged_to[labelled] = number[whole.charged_to[labelled]]
        shown_as[labelled] = _compose(number, whole.shown_as[labelled])
    tree, order = Tree.from_parents(
        np.concatenate(parents), np.concatenate(functions), np.zeros(made, np.uint8)
    )
    assert (order == np.arange(made)).all()
    return Placed(
        tree,
        np.concatenate(of_copy),
        np.concatenate(firsts),
        charged_to,
        shown_as,
        len(split.functions) - 1,
    )


def _with_ancestors(parent: Ints, entries: Ints) -> Mask:
    wanted = np.zeros(len(parent), np.bool_)
    wanted[0] = True
    while len(entries):
        entries = np.unique(entries[~wanted[entries]])
        wanted[entries] = True
        entries = parent[entries]
    return wanted


def _compose(outer: Ints, inner: Ints) -> Ints:
    """Return `outer[inner]`, keeping `OUTSIDE`."""
    return np.where(inner == OUTSIDE, OUTSIDE, outer[inner])


def _selection(
    profile: Profile, functions: FunctionTable, options: TreeOptions
) -> tuple[Mask, Mask]:
    """Return which nodes are shown, and which are counted; both of shape (nodes,)."""
    tree = profile.tree
    is_hidden = np.isin(functions.layer, [int(layer) for layer in options.hidden])
    if not options.library:
        is_hidden |= functions.is_library
    if options.pivot != "thread":
        is_hidden |= functions.layer == Layer.THREAD
    function = functions.of_frame[tree.frame]
    shown = ~is_hidden[function]
    counted = np.ones(len(tree), np.bool_)
    for edit in options.edits:
        _apply(profile, function, functions, edit, (shown, counted))
    return shown, counted


def _apply(
    profile: Profile,
    function: Ints,
    functions: FunctionTable,
    edit: Edit,
    masks: tuple[Mask, Mask],
) -> None:
    """Apply one edit to the masks of `_selection`."""
    tree, (shown, counted) = profile.tree, masks
    if edit.kind == "root":
        _check_target(edit.target, len(tree), "node")
        counted[: edit.target] = False
        counted[tree.subtree_end[edit.target] :] = False
        shown[edit.target] = True
        return
    _check_target(edit.target, len(profile.frames), "frame")
    targets = function == functions.of_frame[edit.target]
    match edit.kind:
        case "focus":
            counted &= tree.at_or_below(targets)
            shown |= targets
        case "hide":
            shown &= ~targets
        case "collapse":
            shown &= ~tree.below(targets)
            shown |= targets & ~tree.below(targets)
        case "drop":
            counted &= ~tree.at_or_below(targets)


def _check_target(target: int, size: int, what: str) -> None:
    if target >= size:
        raise QueryError(f"no {what} {target}: this profile has the {what}s 0 to {size - 1}")
