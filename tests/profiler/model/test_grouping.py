"""Sums over groups are exact, however large the values are; the topmost nodes of groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepcontext.profiler.model.grouping import NO_GROUP, Groups, sums, topmost
from tests.synthetic import random_profile


@pytest.mark.parametrize("value", [1, 2**52, 2**53 + 1, 2**61])
def test_sums_are_exact(value: int) -> None:
    # 2**53 + 1 is the first whole number that a float64 cannot hold.
    values = np.array([value, 1, -value, 7, value], np.int64)
    found = sums(np.array([0, 0, 1, 2, 2]), values, 4)
    assert found.tolist() == [value + 1, -value, value + 7, 0]
    assert found.dtype == np.int64


def test_no_values_have_sums_of_zero() -> None:
    nothing = np.array([], np.int64)
    assert sums(nothing, nothing, 3).tolist() == [0, 0, 0]


@given(st.integers(0, 2**32 - 1), st.sampled_from([3, 70_000]))
def test_a_topmost_node_has_no_ancestor_of_its_group(seed: int, groups: int) -> None:
    tree = random_profile(300, seed=seed).tree
    random = np.random.default_rng(seed)
    # Few groups, or numbers that need more than 16 bits.
    group = random.integers(0, 3, len(tree)) * (groups // 3)
    group[random.random(len(tree)) < 0.3] = NO_GROUP
    expected = [
        node
        for node in range(len(tree))
        if group[node] != NO_GROUP and group[node] not in group[list(tree.path(node)[:-1])]
    ]
    assert topmost(tree, group).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(-3, 3)), max_size=20))
def test_groups_are_those_of_a_dictionary(rows: list[tuple[int, int, int]]) -> None:
    expected: dict[tuple[int, int], list[int]] = {}
    for number, (first, second, _) in enumerate(rows):
        expected.setdefault((first, second), []).append(number)
    table = np.array(rows, np.int64).reshape(-1, 3)
    one, two, values = table.T
    groups = Groups.of(one, two, largest=values)
    assert list(zip(*(each.tolist() for each in groups.keys), strict=True)) == sorted(expected)
    members = [expected[key] for key in sorted(expected)]
    largest = [sorted(each, key=lambda row: -values[row]) for each in members]
    assert [each.tolist() for each in groups] == largest
    assert groups.first(values).tolist() == [values[each].max() for each in members]
    assert groups.sums(values).tolist() == [values[each].sum() for each in members]
    assert groups.least(values).tolist() == [values[each].min() for each in members]
    assert groups.most(values).tolist() == [values[each].max() for each in members]
    assert Groups.of(one).of_row().tolist() == [sorted({*one.tolist()}).index(each) for each in one]
