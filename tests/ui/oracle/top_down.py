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
from deepcontext.profiler.summaries.phases import shown_phase
from deepcontext.profiler.views.layers import Layer
from tests.ui.oracle.functions import FunctionTable
from tests.ui.oracle.labels import labels
from tests.ui.oracle.merge import Merged, merge

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.format.frame import Phase
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.model.tree import Tree
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
        source: node of the profile; for a label, the first node below it.
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
        entries = entries_of(profile, self.functions, options)
        self._merged: Merged = merge(entries.parent, entries.function)
        self._charged_to = _compose(self._merged.of_entry, entries.charged_to)
        self._shown_as = _compose(self._merged.of_entry, entries.shown_as)
        # The node of the profile that represents a node of the view.
        self.source: Ints = entries.source[self._merged.first]

    @property
    def tree(self) -> Tree:
        """Return the shape."""
        return self._merged.tree

    def node_of(self, source: int) -> int:
        """Return the node that shows a node of the profile, or receives its cost.

        Raises:
            QueryError: the node does not exist or is not shown.
        """
        if not 0 <= source < len(self._charged_to):
            raise QueryError(
                f"no node {source}: this profile has the nodes 0 to {len(self._charged_to) - 1}"
            )
        node = int(self._charged_to[source])
        if node == OUTSIDE:
            raise QueryError(f"node {source} is not shown; undo a focus or a drop")
        return node

    def counting(self, phase: Phase | None) -> TopDown:
        """Return the same tree with the cost of one phase only, or of all phases for None."""
        view = copy.copy(self)
        view.__dict__.pop("calls", None)
        view.options = replace(self.options, phase=phase)
        return view

    def members(self, node: int) -> Ints:
        """Return the nodes of the profile that a node represents, ascending."""
        return np.flatnonzero(self._shown_as == node)

    def exclusive(self, values: Ints) -> Ints:
        """Return the exclusive cost of each node, shape (nodes,), int64.

        Args:
            values: exclusive cost of each node of the profile, shape (profile's nodes,), int64.
        """
        counted = self._is_counted()
        return sums(self._charged_to[counted], values[counted], len(self.tree))

    def counted(self, values: Ints) -> Ints:
        """Return `values` with 0 for nodes that the view does not count; shapes as `exclusive`."""
        return np.where(self._is_counted(), values, 0)

    def _is_counted(self) -> Mask:
        counted: Mask = self._charged_to != OUTSIDE
        if self.options.phase is not None:
            counted &= shown_phase(self.profile.tree) == self.options.phase
        return counted

    @cached_property
    def calls(self) -> Spreads | None:
        """Return the distribution of each node's calls, None where no calls were timed."""
        rows = self.profile.metrics.get(CALL_DURATION_NS.name)
        if rows is None:
            return None
        group = self._shown_as[rows.node]
        if self.options.phase is not None:
            phase = shown_phase(self.profile.tree)[rows.node]
            group = np.where(phase == self.options.phase, group, NO_GROUP)
        return Spreads.of_rows(rows, group, len(self.tree))

    @cached_property
    def phase(self) -> npt.NDArray[np.uint8]:
        """Return the phase of the first node that each node represents, shape (nodes,)."""
        return self.profile.tree.phase[self.source]


def entries_of(profile: Profile, functions: FunctionTable, options: TreeOptions) -> Entries:
    """Leave out hidden frames; siblings may still be equal."""
    tree = profile.tree
    function = functions.of_frame[tree.frame]
    shown, counted = _selection(profile, functions, options)
    split = labels(profile, functions, options.pivot)
    if split is not None:
        shown &= ~split.replaced[function]
    shown[0] = True
    nearest = np.where(counted, tree.nearest(shown & counted), OUTSIDE)
    # With a focus, the nearest shown frame may lie above the focus: the root replaces it.
    nearest[(nearest == OUTSIDE) & counted] = 0
    if split is not None:
        return _split(profile, function, nearest, split)
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


def _split(profile: Profile, function: Ints, nearest: Ints, split: Labels) -> Entries:
    """Give each label a copy of the paths that lead to nodes with that label."""
    whole = _joined(profile, function, nearest)
    charged_to, shown_as = np.full(len(nearest), OUTSIDE), np.full(len(nearest), OUTSIDE)
    parents, functions, sources = [np.zeros(1, np.int64)], [function[:1]], [np.zeros(1, np.int64)]
    made = 1
    for label in np.unique(split.of_node[nearest != OUTSIDE]).tolist():
        labelled = (split.of_node == label) & (whole.charged_to != OUTSIDE)
        wanted = np.flatnonzero(_with_ancestors(whole.parent, whole.charged_to[labelled]))[1:]
        below = 0
        if label >= 0:
            parents.append(np.zeros(1, np.int64))
            functions.append(split.functions[label : label + 1])
            sources.append(np.flatnonzero(labelled)[:1])
            below = made
            made += 1
        number = np.full(len(whole.parent), below)
        number[wanted] = made + np.arange(len(wanted))
        parents.append(number[whole.parent[wanted]])
        functions.append(whole.function[wanted])
        sources.append(whole.source[wanted])
        made += len(wanted)
        charged_to[labelled] = number[whole.charged_to[labelled]]
        shown_as[labelled] = _compose(number, whole.shown_as[labelled])
    return Entries(
        np.concatenate(parents),
        np.concatenate(functions),
        np.concatenate(sources),
        charged_to,
        shown_as,
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
