"""Top-down trees, compared with a slow and simple construction."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from deepcontext.errors import QueryError
from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.summaries import ranks as rank_summary
from deepcontext.profiler.views.layers import LAYER_OF_KIND, Layer
from deepcontext.profiler.views.pivot import pivots
from tests.synthetic import random_profile
from tests.ui.oracle.merge import merge
from tests.ui.oracle.options import Edit, TreeOptions
from tests.ui.oracle.top_down import TopDown

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

METRIC = "host_time_ns"
USER, LIBRARY = "/home/me/train.py", "/usr/lib/python3.11/site-packages/torch/nn/modules/linear.py"


def program(make_profile: Any) -> Profile:
    """root > thread > train:1 (> Net > forward > mm 30 > mm_backward 5), train:2 (> mm 7)."""
    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.THREAD, "MainThread"),
        Frame(FrameKind.PYTHON, "train", USER, 1),
        Frame(FrameKind.MODULE, "Linear 'net'"),
        Frame(FrameKind.PYTHON, "Linear.forward", LIBRARY, 134),
        Frame(FrameKind.OPERATOR, "aten::mm"),
        Frame(FrameKind.OPERATOR, "MmBackward0"),
        Frame(FrameKind.PYTHON, "train", USER, 2),
        Frame(FrameKind.OPERATOR, "aten::mm"),
    ]
    phases = [Phase.NONE] * 5 + [Phase.FORWARD, Phase.BACKWARD, Phase.NONE, Phase.OPTIMIZER]
    profile: Profile = make_profile(
        [0, 0, 1, 2, 3, 4, 5, 1, 7],
        frames,
        phases=phases,
        host_time_ns={5: 30, 6: 5, 8: 7},
        call_samples_ns={5: [10, 20], 6: [5], 8: [7]},
    )
    return profile


def paths(view: TopDown, metric: str = METRIC) -> dict[str, int]:
    """Return the inclusive value of every path with a cost; the root is "all"."""
    inclusive = view.tree.inclusive(view.exclusive(view.profile.exclusive(metric)))
    return {
        "/".join(
            "all" if each == 0 else view.functions.frame(int(view.tree.frame[each])).name
            for each in view.tree.path(node)
        ): int(inclusive[node])
        for node in range(len(view.tree))
        if inclusive[node]
    }


def test_lines_of_a_function_are_one_box_unless_told_apart(make_profile: Any) -> None:
    profile = program(make_profile)
    merged = paths(TopDown(profile, TreeOptions()))
    assert merged["all/MainThread/train"] == 42
    apart = TopDown(profile, TreeOptions(by_line=True))
    names = [apart.functions.frame(int(each)) for each in apart.tree.frame]
    assert [frame.line for frame in names if frame.name == "train"] == [1, 2]


def test_library_frames_are_hidden_unless_asked_for(make_profile: Any) -> None:
    profile = program(make_profile)
    assert "all/MainThread/train/Linear 'net'/aten::mm" in paths(TopDown(profile, TreeOptions()))
    shown = paths(TopDown(profile, TreeOptions(library=True)))
    assert "all/MainThread/train/Linear 'net'/Linear.forward/aten::mm" in shown


def test_a_hidden_layer_gives_its_cost_to_the_frame_above(make_profile: Any) -> None:
    options = TreeOptions(hidden=frozenset({Layer.MODULE, Layer.PYTHON}))
    assert paths(TopDown(program(make_profile), options)) == {
        "all": 42,
        "all/MainThread": 42,
        "all/MainThread/aten::mm": 42,
        "all/MainThread/aten::mm/MmBackward0": 5,
    }


def test_one_phase_counts_only_its_own_cost(make_profile: Any) -> None:
    view = TopDown(program(make_profile), TreeOptions()).counting(Phase.BACKWARD)
    assert paths(view)["all/MainThread/train"] == 5
    assert view.calls is not None
    assert view.calls.count.sum() == 1


def test_split_by_phase_puts_each_cost_under_its_phase(make_profile: Any) -> None:
    split = paths(TopDown(program(make_profile), TreeOptions(pivot="phase")))
    assert split["all/forward"] == 30
    assert split["all/backward"] == 5
    assert split["all/backward/train/Linear 'net'/aten::mm/MmBackward0"] == 5
    assert split["all/optimizer/train/aten::mm"] == 7
    assert split["all"] == 42


def test_split_by_nothing_joins_the_threads(make_profile: Any) -> None:
    assert "all/train" in paths(TopDown(program(make_profile), TreeOptions(pivot="none")))


def test_split_by_rank(make_profile: Any) -> None:
    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.RANK, "rank 0", line=0),
        Frame(FrameKind.THREAD, "MainThread"),
        Frame(FrameKind.OPERATOR, "aten::mm"),
        Frame(FrameKind.RANK, "rank 1", line=1),
        Frame(FrameKind.THREAD, "MainThread"),
        Frame(FrameKind.SCOPE, "rank 7"),
        Frame(FrameKind.OPERATOR, "aten::mm"),
    ]
    profile = make_profile([0, 0, 1, 2, 0, 4, 5, 6], frames, host_time_ns={3: 3, 7: 4})
    assert paths(TopDown(profile, TreeOptions(pivot="rank"))) == {
        "all": 7,
        "all/rank 0": 3,
        "all/rank 0/aten::mm": 3,
        "all/rank 1": 4,
        "all/rank 1/rank 7": 4,
        "all/rank 1/rank 7/aten::mm": 4,
    }
    joined = paths(TopDown(profile, TreeOptions(pivot="none")))
    assert joined == {"all": 7, "all/aten::mm": 3, "all/rank 7": 4, "all/rank 7/aten::mm": 4}
    by_thread = paths(TopDown(profile, TreeOptions()))
    assert by_thread["all/rank 0/MainThread/aten::mm"] == 3
    with pytest.raises(QueryError, match="this profile has: thread, none, phase, rank"):
        TopDown(profile, TreeOptions(pivot="device"))


@pytest.mark.parametrize(
    "name", ["step 12", "rank 3", "cuda:0", "Thread-1", "device 0", "stream 7", "MainThread"]
)
def test_the_name_of_a_scope_does_not_make_a_dimension(make_profile: Any, name: str) -> None:
    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.THREAD, "MainThread"),
        Frame(FrameKind.SCOPE, name),
        Frame(FrameKind.OPERATOR, "aten::mm"),
    ]
    profile = make_profile([0, 0, 1, 2], frames, host_time_ns={3: 3})
    assert pivots(profile) == ("thread", "none", "phase")
    assert not rank_summary.rank_nodes(profile)
    shown = paths(TopDown(profile, TreeOptions(pivot="none")))
    assert shown[f"all/{name}/aten::mm"] == 3


def edited(profile: Profile, *edits: tuple[str, str]) -> TopDown:
    """Return the view after edits, each a kind and the name of a function."""
    named = {frame.name: index for index, frame in enumerate(profile.frames)}
    return TopDown(
        profile,
        TreeOptions(edits=tuple(Edit.parse(f"{kind}:{named[name]}") for kind, name in edits)),
    )


def test_hide_merges_a_function_into_its_callers(make_profile: Any) -> None:
    shown = paths(edited(program(make_profile), ("hide", "aten::mm")))
    assert shown["all/MainThread/train/Linear 'net'/MmBackward0"] == 5
    assert shown["all"] == 42


def test_collapse_merges_what_a_function_calls_into_it(make_profile: Any) -> None:
    shown = paths(edited(program(make_profile), ("collapse", "Linear 'net'")))
    assert shown["all/MainThread/train/Linear 'net'"] == 35
    assert not any("Linear 'net'/" in path for path in shown)


def test_drop_removes_a_function_and_its_cost(make_profile: Any) -> None:
    assert paths(edited(program(make_profile), ("drop", "Linear 'net'")))["all"] == 7


def test_focus_keeps_what_lies_below_a_function(make_profile: Any) -> None:
    shown = paths(edited(program(make_profile), ("focus", "aten::mm")))
    assert shown == {"all": 42, "all/aten::mm": 42, "all/aten::mm/MmBackward0": 5}


def test_root_keeps_one_subtree(make_profile: Any) -> None:
    view = TopDown(program(make_profile), TreeOptions(edits=(Edit("root", 3),)))
    assert paths(view)["all"] == 35
    with pytest.raises(QueryError, match="node 8 is not shown"):
        view.node_of(8)
    with pytest.raises(QueryError, match="no node 99"):
        view.node_of(99)


@pytest.mark.parametrize("text", ["", "hide", "hide:", "hide:x", "hide:-1", "paint:3"])
def test_malformed_edits_are_refused(text: str) -> None:
    with pytest.raises(QueryError, match="cannot read the edit"):
        Edit.parse(text)


def test_edits_of_missing_frames_are_refused(make_profile: Any) -> None:
    with pytest.raises(QueryError, match="no frame 99"):
        TopDown(program(make_profile), TreeOptions(edits=(Edit("hide", 99),)))


OPTIONS = [
    TreeOptions(),
    TreeOptions(library=True),
    TreeOptions(library=True, by_line=True),
    TreeOptions(hidden=frozenset({Layer.PYTHON})),
    TreeOptions(hidden=frozenset({Layer.PYTHON, Layer.SCOPE, Layer.MODULE, Layer.OPERATOR})),
    TreeOptions(pivot="none"),
    TreeOptions(pivot="phase"),
    TreeOptions(pivot="phase", hidden=frozenset({Layer.MODULE})),
    TreeOptions(edits=(Edit("hide", 3), Edit("collapse", 11))),
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_lost_or_counted_twice(options: TreeOptions, seed: int) -> None:
    profile = random_profile(3_000, seed=seed, depth=12)
    view = TopDown(profile, options)
    exclusive = view.exclusive(profile.exclusive(METRIC))
    assert exclusive.sum() == profile.exclusive(METRIC).sum()
    shown = view.members
    nodes = np.concatenate([shown(node) for node in range(1, min(len(view.tree), 200))])
    assert len(np.unique(nodes)) == len(nodes)
    assert view.calls is not None
    is_split_or_whole = not options.hidden and not options.edits
    if is_split_or_whole:
        assert view.calls.count.sum() == profile.counts("call_duration_ns").sum()


@pytest.mark.parametrize("seed", range(3))
def test_the_merged_tree_equals_a_dictionary_of_paths(seed: int) -> None:
    profile = random_profile(2_000, seed=seed, depth=10)
    options = TreeOptions(library=True, hidden=frozenset({Layer.MODULE}))
    expected: dict[tuple[tuple[int, str, str], ...], int] = defaultdict(int)
    values = profile.exclusive(METRIC)
    for node in range(len(profile.tree)):
        key = tuple(
            (int(frame.kind), frame.name, frame.file)
            for frame in profile.path(node)[1:]
            if LAYER_OF_KIND[frame.kind] is not Layer.MODULE
        )
        expected[key] += int(values[node])
    view = TopDown(profile, options)
    exclusive = view.exclusive(values)
    found = {}
    for node in range(len(view.tree)):
        path = [view.functions.frame(int(view.tree.frame[n])) for n in view.tree.path(node)[1:]]
        found[tuple((int(f.kind), f.name, f.file) for f in path)] = int(exclusive[node])
    assert found == expected


def test_merge_keeps_the_order_of_first_appearance() -> None:
    #        0 root: 1 "a" (2 "x"), 3 "b", 4 "a" (5 "x", 6 "y")
    parent = np.array([0, 0, 1, 0, 0, 4, 4])
    function = np.array([0, 1, 7, 2, 1, 7, 8])
    merged = merge(parent, function)
    assert merged.tree.frame.tolist() == [0, 1, 7, 8, 2]
    assert merged.tree.parent.tolist() == [-1, 0, 1, 1, 0]
    assert merged.of_entry.tolist() == [0, 1, 2, 4, 1, 2, 3]
    assert merged.first.tolist() == [0, 1, 2, 6, 3]
