"""Bottom-up trees, compared with a dictionary of reversed paths."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.profiler.format.frame import Frame, FrameKind
from tests.synthetic import random_profile
from tests.ui.oracle.bottom_up import bottom_up, callers_of
from tests.ui.oracle.options import TreeOptions
from tests.ui.oracle.top_down import TopDown

if TYPE_CHECKING:
    from tests.ui.oracle.bottom_up import CallerTree

METRIC = "host_time_ns"


def chains(view: TopDown, turned: CallerTree) -> dict[tuple[int, ...], int]:
    return {
        tuple(int(turned.tree.frame[each]) for each in turned.tree.path(node)[1:]): int(
            turned.value[node]
        )
        for node in range(1, len(turned.tree))
    }


@pytest.mark.parametrize("seed", range(3))
def test_every_chain_of_callers_has_the_cost_of_the_calls_through_it(seed: int) -> None:
    profile = random_profile(1_500, seed=seed, depth=9)
    view = TopDown(profile, TreeOptions(library=True))
    exclusive = view.exclusive(profile.exclusive(METRIC))
    expected: dict[tuple[int, ...], int] = defaultdict(int)
    for node in range(1, len(view.tree)):
        path = [int(view.tree.frame[each]) for each in reversed(view.tree.path(node)[1:])]
        for length in range(1, len(path) + 1):
            expected[tuple(path[:length])] += int(exclusive[node])
    turned = bottom_up(view.tree, exclusive, 1)
    assert chains(view, turned) == {chain: value for chain, value in expected.items() if value}
    assert turned.value[0] == exclusive.sum()
    assert turned.left_out == 0


def test_nodes_below_the_threshold_are_counted_but_not_built() -> None:
    profile = random_profile(1_500, depth=9)
    view = TopDown(profile, TreeOptions(library=True))
    exclusive = view.exclusive(profile.exclusive(METRIC))
    whole = bottom_up(view.tree, exclusive, 1)
    least = int(exclusive.sum()) // 200
    cut = bottom_up(view.tree, exclusive, least)
    assert cut.left_out > 0
    assert chains(view, cut) == {
        chain: value for chain, value in chains(view, whole).items() if value >= least
    }


def test_callers_of_a_recursive_function_count_its_cost_once(make_profile: Any) -> None:
    user = "/home/me/a.py"
    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.PYTHON, "main", user, 1),
        Frame(FrameKind.PYTHON, "walk", user, 5),
        Frame(FrameKind.PYTHON, "walk", user, 6),
        Frame(FrameKind.OPERATOR, "aten::mm"),
        Frame(FrameKind.PYTHON, "other", user, 9),
        Frame(FrameKind.PYTHON, "walk", user, 5),
        Frame(FrameKind.OPERATOR, "aten::mm"),
    ]
    profile = make_profile([0, 0, 1, 2, 3, 0, 5, 6], frames, host_time_ns={4: 10, 7: 3})
    view = TopDown(profile, TreeOptions())
    inclusive = view.tree.inclusive(view.exclusive(profile.exclusive(METRIC)))
    walk = int(view.functions.of_frame[2])
    turned = callers_of(view.tree, walk, inclusive, 1)
    names = {
        "<".join(view.functions.frame(function).name for function in chain): value
        for chain, value in chains(view, turned).items()
    }
    assert names == {"walk": 13, "walk<main": 10, "walk<other": 3}
