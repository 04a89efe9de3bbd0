"""The tree's columns, compared node by node with a direct implementation of the definition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.model import tree as tree_module
from deepcontext.profiler.model.tree import NO_NODE, Tree
from tests.lines_run import lines_run
from tests.synthetic import random_profile

if TYPE_CHECKING:
    from tests.profiler.conftest import Parents


def tree_of(parents: list[int]) -> tuple[Tree, list[int]]:
    """The tree, with the creation-order id of each node as its frame."""
    count = len(parents)
    columns = np.array(parents), np.arange(count), np.zeros(count, np.uint8)
    tree, order = Tree.from_parents(*columns)
    return tree, order.tolist()


def preorder(parents: list[int]) -> list[int]:
    children: dict[int, list[int]] = {}
    for node, parent in list(enumerate(parents))[1:]:
        children.setdefault(parent, []).append(node)
    order, pending = [], [0]
    while pending:
        order.append(pending.pop())
        pending += reversed(children.get(order[-1], []))
    return order


def subtree(tree: Tree, node: int) -> list[int]:
    return [each for each in range(len(tree)) if node in tree.path(each)]


@given(data=st.data())
def test_from_parents_walks_depth_first_and_keeps_the_order_of_children(
    data: st.DataObject, parents: Parents
) -> None:
    given_parents = data.draw(parents())
    tree, order = tree_of(given_parents)
    assert order == preorder(given_parents)
    assert tree.frame.tolist() == order
    assert tree.parent[0] == NO_NODE
    for node in range(1, len(tree)):
        assert tree.parent[node] < node
        assert order[tree.parent[node]] == given_parents[order[node]]


@given(data=st.data())
def test_a_subtree_is_a_slice_and_depth_is_the_length_of_the_path(
    data: st.DataObject, parents: Parents
) -> None:
    tree, _ = tree_of(data.draw(parents()))
    for node in range(len(tree)):
        assert subtree(tree, node) == list(range(node, int(tree.subtree_end[node])))
        assert tree.depth[node] == len(tree.path(node)) - 1
        below = [each for each in range(len(tree)) if tree.parent[each] == node]
        assert list(tree.children(node)) == below


@given(data=st.data())
def test_inclusive_is_the_sum_over_the_subtree_and_keeps_the_total(
    data: st.DataObject, parents: Parents
) -> None:
    tree, _ = tree_of(data.draw(parents()))
    count = len(tree)
    values = np.array(data.draw(st.lists(st.integers(0, 2**50), min_size=count, max_size=count)))
    inclusive = tree.inclusive(values)
    assert (inclusive >= values).all()
    assert inclusive[0] == values.sum()
    for node in range(count):
        assert inclusive[node] == values[subtree(tree, node)].sum()


@given(data=st.data())
def test_inclusive_maximum_is_the_maximum_over_the_subtree(
    data: st.DataObject, parents: Parents
) -> None:
    tree, _ = tree_of(data.draw(parents()))
    count = len(tree)
    values = np.array(data.draw(st.lists(st.integers(-9, 9), min_size=count, max_size=count)))
    expected = [values[subtree(tree, node)].max() for node in range(count)]
    assert tree.inclusive_maximum(values).tolist() == expected


@given(data=st.data())
def test_below_and_nearest_look_up_the_path(data: st.DataObject, parents: Parents) -> None:
    tree, _ = tree_of(data.draw(parents()))
    count = len(tree)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    for node, (is_below, nearest) in enumerate(
        zip(tree.below(mask).tolist(), tree.nearest(mask).tolist(), strict=True)
    ):
        marked = [each for each in tree.path(node) if mask[each]]
        assert is_below == any(each != node for each in marked)
        assert nearest == (marked[-1] if marked else NO_NODE)


@given(data=st.data())
def test_outermost_and_at_or_above_agree_with_the_paths(
    data: st.DataObject, parents: Parents
) -> None:
    tree, _ = tree_of(data.draw(parents()))
    count = len(tree)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    marked = np.flatnonzero(mask).tolist()
    paths = {node: set(tree.path(node)) for node in marked}
    outermost = [node for node in marked if paths[node].isdisjoint(set(marked) - {node})]
    assert tree.outermost(mask).tolist() == outermost
    above = {node for path in paths.values() for node in path}
    assert tree.at_or_above(mask).tolist() == [node in above for node in range(count)]


def test_below_is_the_same_for_few_and_for_many_subtrees(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = random_profile(3000, depth=12)
    mask = profile.is_kind(FrameKind.PYTHON)
    one_by_one = profile.tree.below(mask)
    monkeypatch.setattr(tree_module, "_FEW_SUBTREES", 0)
    assert 0 < one_by_one.sum() < len(one_by_one)
    assert profile.tree.below(mask).tolist() == one_by_one.tolist()


@given(data=st.data())
def test_only_valid_columns_make_a_tree(data: st.DataObject, parents: Parents) -> None:
    tree, _ = tree_of(data.draw(parents(8)))
    count = len(tree)
    parent, end = tree.parent.copy(), tree.subtree_end.copy()
    column = data.draw(st.sampled_from([parent, end]))
    column[data.draw(st.integers(0, count - 1))] = data.draw(st.integers(-2, count + 1))
    columns = parent, tree.frame, tree.phase, end
    # The definition: a walk by children visits 0, 1, 2, ... and finds every recorded end.
    is_sound = parent[0] == NO_NODE and all(0 <= parent[n] < n for n in range(1, count))
    if is_sound:
        is_sound = preorder([0, *parent[1:].tolist()]) == list(range(count))
    if is_sound:
        is_sound = end.tolist() == tree_of([0, *parent[1:].tolist()])[0].subtree_end.tolist()
    if is_sound:
        assert Tree.from_preorder(*columns).subtree_end.tolist() == end.tolist()
    else:
        with pytest.raises(ValueError, match=r"^'(parent|subtree_end)' row \d+: "):
            Tree.from_preorder(*columns)


def test_an_empty_tree_is_refused() -> None:
    none = np.zeros(0, np.int32)
    with pytest.raises(ValueError, match="root"):
        Tree.from_preorder(none, none.astype(np.uint32), none.astype(np.uint8), none)
    with pytest.raises(ValueError, match="0 parents"):
        Tree.from_parents(none, none, none)


@pytest.mark.parametrize("parent", [1, 2, -1])
def test_a_parent_that_does_not_precede_its_child_is_refused(parent: int) -> None:
    columns = np.array([0, parent]), np.zeros(2, np.int32), np.zeros(2, np.uint8)
    with pytest.raises(ValueError, match=f"parent {parent} of node 1"):
        Tree.from_parents(*columns)


def test_the_passes_over_a_chain_of_a_hundred_thousand_frames_are_few() -> None:
    """The passes grow with the logarithm of the depth; one pass per level would be 100,000."""

    def passes() -> None:
        tree, _ = tree_of([0, *range(99_999)])
        assert tree.depth[-1] == 99_999
        assert (tree.inclusive_maximum(np.arange(100_000)) == 99_999).all()

    assert lines_run(passes) < 5_000
