"""Answers with a tree: top-down, bottom-up, callers and callees of a function, difference."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, assert_never

import numpy as np

from deepcontext.errors import QueryError
from deepcontext.profiler.format.frame import Phase
from deepcontext.ui.measures import measure_named, values_of
from tests.ui.oracle.answers import FlameAnswer, NodeColumns
from tests.ui.oracle.bottom_up import bottom_up, callers_of, outermost
from tests.ui.oracle.cut import Cut, cut, difference_columns, function_columns
from tests.ui.oracle.options import Edit
from tests.ui.oracle.top_down import OUTSIDE
from tests.ui.oracle.trees import difference_of, tree_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.model.grouping import Spreads
    from deepcontext.profiler.model.tree import Tree
    from deepcontext.ui.web.open_profiles import OpenProfiles
    from tests.ui.oracle.bottom_up import CallerTree
    from tests.ui.oracle.questions import FlameQuestion
    from tests.ui.oracle.top_down import TopDown

    Ints = npt.NDArray[np.int64]

_ALL: Final = -1
_NOT_RECORDED: Final = -1
# A page cannot request an inverted tree again below a node, so these trees are sent in finer detail.
_FINER: Final = 4


def flame(profiles: OpenProfiles, question: FlameQuestion) -> FlameAnswer:
    """Return the visible part of a tree.

    Raises:
        QueryError: the question names something that does not exist.
    """
    match question.kind:
        case "top_down":
            view = tree_of(profiles, question.tree.file, question.tree.options)
            root = 0 if question.root == _ALL else view.node_of(question.root)
            return _forwards(view, question, root)
        case "bottom_up":
            return _bottom_up(profiles, question)
        case "callers":
            return _callers(profiles, question)
        case "callees":
            return _callees(profiles, question)
        case "difference":
            return _difference(profiles, question)
        case unknown:
            assert_never(unknown)


def _forwards(view: TopDown, question: FlameQuestion, root: int) -> FlameAnswer:
    exclusive = _exclusive(view, question)
    inclusive = view.tree.inclusive(exclusive)
    part = cut(view.tree, inclusive, root, question.px)
    functions, function = function_columns(view.functions, view.tree.frame[part.nodes])
    nodes = NodeColumns(
        depth=view.tree.depth[part.nodes].tolist(),
        function=function,
        value=inclusive[part.nodes].tolist(),
        exclusive=exclusive[part.nodes].tolist(),
        source=view.source[part.nodes].tolist(),
        phase=_phase_labels(view.phase[part.nodes]),
    )
    nodes = _with_calls(nodes, view.calls, part.nodes)
    answer = _answer(question, view, part, nodes)
    return replace(answer, functions=functions, total=int(inclusive[0]))


def _bottom_up(profiles: OpenProfiles, question: FlameQuestion) -> FlameAnswer:
    view = tree_of(profiles, question.tree.file, question.tree.options)
    exclusive = _exclusive(view, question)
    threshold = _fine_threshold(int(exclusive.sum()), question.px)
    inverted = bottom_up(view.tree, exclusive, threshold)
    return _backwards(view, question, inverted, threshold)


def _callers(profiles: OpenProfiles, question: FlameQuestion) -> FlameAnswer:
    view = tree_of(profiles, question.tree.file, question.tree.options)
    inclusive = view.tree.inclusive(_exclusive(view, question))
    function = _function(view, question.function)
    whole = int(inclusive[outermost(view.tree, function)].sum())
    threshold = _fine_threshold(whole, question.px)
    inverted = callers_of(view.tree, function, inclusive, threshold)
    return _backwards(view, question, inverted, threshold)


def _callees(profiles: OpenProfiles, question: FlameQuestion) -> FlameAnswer:
    """Return a function's callees: the tree focused on the function, with the function on top."""
    options = question.tree.options
    _function(tree_of(profiles, question.tree.file, options), question.function)
    focused = replace(options, edits=(*options.edits, Edit("focus", question.function)))
    view = tree_of(profiles, question.tree.file, focused)
    return _forwards(view, question, 0)


def _backwards(
    view: TopDown, question: FlameQuestion, inverted: CallerTree, threshold: int
) -> FlameAnswer:
    part = cut(inverted.tree, inverted.value, 0, question.px * _FINER)
    functions, function = function_columns(view.functions, inverted.tree.frame[part.nodes])
    example = inverted.example[part.nodes]
    # Only a chain that ends at a thread has no further caller; elsewhere callers are left out.
    is_end = (view.tree.parent[inverted.example] == 0) & (inverted.example > 0)
    exclusive = np.where(
        is_end, inverted.value - _sum_of_children(inverted.tree, inverted.value), 0
    )
    nodes = NodeColumns(
        depth=inverted.tree.depth[part.nodes].tolist(),
        function=function,
        value=inverted.value[part.nodes].tolist(),
        exclusive=exclusive[part.nodes].tolist(),
        source=view.source[example].tolist(),
        phase=_phase_labels(view.phase[example]),
    )
    return replace(
        _answer(question, view, part, nodes),
        functions=functions,
        total=int(inverted.value[0]),
        left_out=part.left_out + inverted.left_out,
        threshold=max(part.threshold, threshold if inverted.left_out else 0),
    )


def _difference(profiles: OpenProfiles, question: FlameQuestion) -> FlameAnswer:
    # Before the trees, as the engine does: a profile may lack both the measure and a frame.
    measure_named(profiles.get(question.files[0]).profile, question.tree.metric)
    joined = difference_of(profiles, question.files, question.tree.options)
    views = joined.views
    costs = joined.exclusive([values_of(view.profile, question.tree.metric) for view in views])
    totals = [int(each.sum()) for each in costs]
    if question.normalize:
        # Each row is rounded separately, so the sum is off by less than one unit for each node.
        costs[1:] = [
            np.rint(each * (totals[0] / total)).astype(np.int64) if total else each
            for each, total in zip(costs[1:], totals[1:], strict=True)
        ]
    # The largest side of each node, so that removed and new nodes stay visible and widths add up.
    largest = np.max(costs, axis=0)
    width = joined.tree.inclusive(largest)
    part = cut(joined.tree, width, 0, question.px * _FINER)
    functions, function = difference_columns(joined, joined.tree.frame[part.nodes])
    source = np.full(len(part.nodes), OUTSIDE)
    phase = np.zeros(len(part.nodes), np.uint8)
    sides = np.empty((len(part.nodes), len(views)), object)
    for side, (view, of_view) in enumerate(zip(views, joined.nodes(), strict=True)):
        own = of_view[part.nodes]
        has = own != OUTSIDE
        source[has] = view.source[own[has]]
        phase[has] = view.phase[own[has]]
        inclusive = joined.tree.inclusive(costs[side])[part.nodes]
        sides[:, side] = [
            int(value) if known else None for value, known in zip(inclusive, has, strict=True)
        ]
    nodes = NodeColumns(
        depth=joined.tree.depth[part.nodes].tolist(),
        function=function,
        value=width[part.nodes].tolist(),
        exclusive=largest[part.nodes].tolist(),
        source=source.tolist(),
        phase=_phase_labels(phase),
        sides=sides.tolist(),
    )
    return replace(
        _answer(question, views[-1], part, nodes),
        functions=functions,
        total=int(width[0]),
        totals=totals,
    )


def _answer(question: FlameQuestion, view: TopDown, part: Cut, nodes: NodeColumns) -> FlameAnswer:
    return FlameAnswer(
        unit=measure_named(view.profile, question.tree.metric).unit,
        above=part.above,
        left_out=part.left_out,
        threshold=part.threshold,
        nodes=nodes,
    )


def _exclusive(view: TopDown, question: FlameQuestion) -> Ints:
    return view.exclusive(values_of(view.profile, question.tree.metric))


def _function(view: TopDown, frame: int) -> int:
    """Return the function that a frame belongs to.

    Raises:
        QueryError: the frame does not exist, or its layer is hidden.
    """
    if frame >= len(view.functions.of_frame):
        raise QueryError(
            f"no frame {frame}: this profile has the frames 0 to {len(view.functions.of_frame) - 1}"
        )
    function = int(view.functions.of_frame[frame])
    if not (view.tree.frame == function).any():
        name = view.functions.frame(function).name
        raise QueryError(f"'{name}' is hidden in the tree; show its layer, or undo the edit")
    return function


def _fine_threshold(whole: int, px: int) -> int:
    return max(whole // (2 * _FINER * px), 1)


def _sum_of_children(tree: Tree, value: Ints) -> Ints:
    total = np.zeros(len(tree), np.int64)
    np.add.at(total, tree.parent[1:], value[1:])
    return total


def _phase_labels(phase: npt.NDArray[np.uint8]) -> list[str]:
    labels = [each.label for each in Phase]
    return [labels[each] for each in phase.tolist()]


def _with_calls(nodes: NodeColumns, spreads: Spreads | None, kept: Ints) -> NodeColumns:
    if spreads is None:
        return nodes
    count = spreads.count[kept]
    divisor = np.maximum(count, 1)
    deviation = np.full(len(kept), float(_NOT_RECORDED))
    if spreads.m2 is not None:
        several = count > 1
        deviation[several] = np.sqrt(spreads.m2[kept][several] / (count[several] - 1))
    mean = np.where(count > 0, spreads.total[kept] / divisor, _NOT_RECORDED)
    return replace(
        nodes,
        calls=count.tolist(),
        mean=np.rint(mean).astype(np.int64).tolist(),
        deviation=np.rint(deviation).astype(np.int64).tolist(),
        minimum=_extremes(spreads.minimum, kept, count),
        maximum=_extremes(spreads.maximum, kept, count),
    )


def _extremes(column: Ints | None, kept: Ints, count: Ints) -> list[int]:
    if column is None:
        return []
    shown: list[int] = np.where(count > 0, column[kept], _NOT_RECORDED).tolist()
    return shown
