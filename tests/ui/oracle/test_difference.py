"""Several profiles in one tree."""

from __future__ import annotations

from typing import Any

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.model.run_info import RunInfo
from tests.synthetic import random_profile
from tests.ui.oracle.difference import Difference
from tests.ui.oracle.options import TreeOptions
from tests.ui.oracle.top_down import TopDown

METRIC = "host_time_ns"


def run(make_profile: Any, folder: str, operators: dict[str, int]) -> Any:
    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.PYTHON, "train", f"{folder}/train.py", 3),
        *(Frame(FrameKind.OPERATOR, name) for name in operators),
    ]
    return make_profile(
        [0, 0, *([1] * len(operators))],
        frames,
        host_time_ns=dict(enumerate(operators.values(), start=2)),
        run=RunInfo(cwd=folder),
    )


def test_the_same_path_in_another_folder_is_the_same_node(make_profile: Any) -> None:
    before = run(make_profile, "/home/me/old", {"aten::mm": 10, "aten::add": 4})
    after = run(make_profile, "/srv/new", {"aten::mm": 6, "aten::mul": 9})
    options = TreeOptions()
    both = Difference([TopDown(before, options), TopDown(after, options)])
    old, new = both.exclusive([before.exclusive(METRIC), after.exclusive(METRIC)])
    found = {}
    for node in range(1, len(both.tree)):
        side, number = both.functions[int(both.tree.frame[node])]
        found[side.functions.frame(number).name] = (int(old[node]), int(new[node]))
    assert found == {
        "train": (0, 0),
        "aten::mm": (10, 6),
        "aten::add": (4, 0),
        "aten::mul": (0, 9),
    }
    of_before, of_after = both.nodes()
    assert (of_before >= 0).sum() == 4
    assert (of_after >= 0).sum() == 4


def test_a_native_frame_is_the_same_for_a_library_in_another_folder(make_profile: Any) -> None:
    def native(folder: str) -> Any:
        frames = [
            Frame(FrameKind.ROOT, ""),
            Frame(FrameKind.NATIVE, "ns::f", f"{folder}/lib/libx.so"),
        ]
        return make_profile([0, 0], frames, host_time_ns={1: 5})

    options = TreeOptions()
    before, after = (TopDown(native(folder), options) for folder in ("/old", "/new"))
    both = Difference([before, after])
    of_before, of_after = both.nodes()
    assert (of_before >= 0).tolist() == (of_after >= 0).tolist()


def test_a_profile_compared_with_itself_has_no_difference() -> None:
    profile = random_profile(2_000, depth=10)
    view = TopDown(profile, TreeOptions())
    both = Difference([view, TopDown(profile, TreeOptions())])
    before, after = both.exclusive([profile.exclusive(METRIC), profile.exclusive(METRIC)])
    assert (before == after).all()
    assert len(both.tree) == len(view.tree)
    assert both.tree.parent.tolist() == view.tree.parent.tolist()


def test_each_of_three_profiles_has_its_own_cost(make_profile: Any) -> None:
    costs = [
        {"aten::mm": 10, "aten::add": 4},
        {"aten::mm": 6, "aten::mul": 9},
        {"aten::mul": 2, "aten::mm": 7},
    ]
    runs = [run(make_profile, f"/home/{n}", each) for n, each in enumerate(costs)]
    joined = Difference([TopDown(each, TreeOptions()) for each in runs])
    values = joined.exclusive([each.exclusive(METRIC) for each in runs])
    found = {}
    for node in range(2, len(joined.tree)):
        view, number = joined.functions[int(joined.tree.frame[node])]
        found[view.functions.frame(number).name] = [
            int(each[node]) if source[node] >= 0 else None
            for each, source in zip(values, joined.nodes(), strict=True)
        ]
    assert found == {
        "aten::mm": [10, 6, 7],
        "aten::add": [4, None, None],
        "aten::mul": [None, 9, 2],
    }
