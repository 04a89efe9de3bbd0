"""The oracle's answers, compared with the Python API; `test_engine.py` holds the page's engine to them."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from deepcontext.errors import QueryError
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import Aggregation, MetricDescriptor
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries.lines import by_line
from deepcontext.profiler.summaries.modules import by_module
from deepcontext.profiler.summaries.operators import by_operator
from deepcontext.profiler.summaries.phases import by_phase
from deepcontext.profiler.summaries.scopes import by_scope
from deepcontext.ui.measures import measures
from deepcontext.ui.web.open_profiles import OpenProfile, OpenProfiles
from tests.synthetic import random_profile
from tests.ui.conftest import gpu_profile
from tests.ui.oracle.ask import asked

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Ask = Callable[[str], Any]

METRIC = "host_time_ns"
SUMMARIES = {"operator": by_operator, "module": by_module, "line": by_line, "scope": by_scope}


@pytest.fixture
def training(training_folder: Path) -> Profile:
    return Profile.load(training_folder / "train.dcprof")


@pytest.fixture
def ask(training_folder: Path) -> Ask:
    profiles = OpenProfiles.open([
        training_folder / "train.dcprof",
        training_folder / "empty.dcprof",
    ])
    return lambda question: asked(profiles, question)


def names(answer: Any) -> list[str]:
    return [answer["functions"]["name"][function] for function in answer["nodes"]["function"]]


def test_the_tree_has_the_totals_of_the_api(ask: Ask, training: Profile) -> None:
    answer = ask("flame")
    total = int(training.exclusive(METRIC).sum())
    assert answer["total"] == total
    by_name = dict(zip(names(answer), answer["nodes"]["value"], strict=True))
    mse = training.query().name("aten::mse_loss").total(METRIC, inclusive=True)
    assert by_name["aten::mse_loss"] == mse
    assert sum(answer["nodes"]["exclusive"]) == total


def test_calls_of_a_node_are_those_of_the_profile(ask: Ask, training: Profile) -> None:
    answer = ask("flame")
    place = names(answer).index("aten::mse_loss")
    node = training.query().name("aten::mse_loss").nodes()[0]
    rows = training.metrics["call_duration_ns"]
    row = rows.row(rows.node.tolist().index(node))
    nodes = answer["nodes"]
    assert nodes["source"][place] == node
    assert nodes["calls"][place] == row["count"]
    assert nodes["mean"][place] == round(row["total"] / row["count"])
    assert nodes["minimum"][place] == row["minimum"]
    assert nodes["deviation"][place] == round((row["m2"] / (row["count"] - 1)) ** 0.5)


@pytest.mark.parametrize("phase", ["forward", "backward", "optimizer", "data_loading"])
def test_one_phase_of_the_tree_is_that_of_the_api(ask: Ask, training: Profile, phase: str) -> None:
    expected = {row.phase.label: row.value for row in by_phase(training)}
    assert ask(f"flame?phase={phase}")["total"] == expected[phase]


def test_bottom_up_begins_with_the_costliest_function(ask: Ask, training: Profile) -> None:
    answer = ask("flame?kind=bottom_up")
    first = answer["nodes"]["depth"].index(1)
    sums: Counter[str] = Counter()
    for node, value in enumerate(training.exclusive(METRIC).tolist()):
        sums[training.frame(node).name] += value
    (name, value), *_ = sums.most_common()
    assert names(answer)[first] == name
    assert answer["nodes"]["value"][first] == value
    assert answer["total"] == training.exclusive(METRIC).sum()


def test_callers_and_callees_of_a_function_have_its_inclusive_cost(
    ask: Ask, training: Profile
) -> None:
    row = next(each for each in ask("table")["rows"] if each["name"] == "aten::addmm")
    callers = ask(f"flame?kind=callers&function={row['id']}")
    callees = ask(f"flame?kind=callees&function={row['id']}")
    expected = training.query().name("aten::addmm").total(METRIC, inclusive=True)
    assert callers["total"] == callees["total"] == expected == row["inclusive"]
    assert "aten::linear" in names(callers)
    assert names(callees)[1:3] == ["aten::addmm", "AddmmBackward0"]


def test_a_difference_has_both_sides(training_folder: Path, training: Profile) -> None:
    path = training_folder / "train.dcprof"
    profiles = OpenProfiles.open([path, path])
    answer = asked(profiles, "flame?kind=difference")
    total = int(training.exclusive(METRIC).sum())
    assert answer["totals"] == [total, total]
    assert answer["nodes"]["sides"] == [[value, value] for value in answer["nodes"]["value"]]


def test_normalizing_scales_the_second_to_the_first(make_profile: Any) -> None:
    small, large = random_profile(500, seed=1, depth=8), random_profile(2_000, seed=2, depth=8)
    profiles = OpenProfiles([OpenProfile.of_memory(small, "a"), OpenProfile.of_memory(large, "b")])
    answer = asked(profiles, "flame?kind=difference&normalize=1")
    before, after = answer["nodes"]["sides"][0]
    assert before == small.exclusive(METRIC).sum()
    assert after == pytest.approx(before, rel=1e-6)
    assert answer["totals"][1] == large.exclusive(METRIC).sum()


@pytest.mark.parametrize("by", SUMMARIES)
def test_tables_are_those_of_the_summary(ask: Ask, training: Profile, by: str) -> None:
    expected = SUMMARIES[by](training)
    answer = ask(f"table?by={by}")
    assert answer["total"] == expected.total
    assert [(row["name"], row["inclusive"], row["exclusive"]) for row in answer["rows"]] == [
        (row.name, row.inclusive, row.exclusive) for row in expected.rows
    ]
    for row, group in zip(answer["rows"], expected.rows, strict=True):
        frame = training.frames[row["id"]]
        assert (frame.name if by != "line" else frame.line) == (
            group.name if by != "line" else group.line
        )


def test_a_table_can_be_searched(ask: Ask) -> None:
    answer = ask("table?text=FOREACH")
    assert {row["name"] for row in answer["rows"]} == {
        "aten::_foreach_add_",
        "aten::_foreach_addcdiv_",
    }
    assert answer["match_count"] == 2
    assert answer["row_count"] > 2


def test_finding_a_text_counts_nested_nodes_once(ask: Ask, training: Profile) -> None:
    answer = ask("find?text=ADDMM")
    query = training.query().name("*ddmm*")
    assert answer["count"] == query.count()
    assert answer["value"] == query.total(METRIC, inclusive=True)
    assert [each["source"] for each in answer["nodes"]] == query.nodes().tolist()
    assert ask("find?text=")["count"] == 0
    assert ask("find?text=nothing")["count"] == 0


def test_a_node_has_its_path_and_phases(ask: Ask, training: Profile) -> None:
    node = int(training.query().name("aten::addmm").nodes()[0])
    answer = ask(f"node?source={node}")
    assert [step["name"] for step in answer["path"]][-3:] == [
        "Linear 'encoder.layers.0.linear'",
        "aten::linear",
        "aten::addmm",
    ]
    value = next(each for each in answer["values"] if each["measure"]["key"] == METRIC)
    assert value["inclusive"] == training.inclusive(METRIC)[node]
    assert value["exclusive"] == training.exclusive(METRIC)[node]
    assert {each["phase"] for each in answer["phases"]} == {"forward", "backward"}
    assert sum(each["value"] for each in answer["phases"]) == value["inclusive"]
    assert answer["calls"]["count"] == 4


def test_a_node_has_its_metrics_that_do_not_add_up(training: Profile) -> None:
    node = int(training.query().name("aten::addmm").nodes()[0])
    above = int(training.tree.parent[node])

    def rows(name: str, how: Aggregation, values: list[int]) -> MetricRows:
        column = np.array([max(values)], np.int64)
        count, total = np.array([len(values)], np.uint64), np.array([sum(values)], np.int64)
        where = np.array([node], np.uint32)
        return MetricRows(
            MetricDescriptor(name, "bytes", how, ""), where, count, total, column, column
        )

    metrics = {
        "peak_bytes": rows("peak_bytes", Aggregation.MAX, [3, 7]),
        "cache_bytes": rows("cache_bytes", Aggregation.PROPERTY, [4, 8]),
    }
    profile = dataclasses.replace(training, metrics={**training.metrics, **metrics})
    profiles = OpenProfiles([OpenProfile.of_memory(profile, "more.dcprof")])

    def own(source: int) -> dict[str, Any]:
        answer = asked(profiles, f"node?library=1&lines=1&source={source}")
        return {each["label"]: each for each in answer["own"]}

    assert own(node)["peak memory"]["largest"] == profile.inclusive("peak_bytes")[node] == 7
    assert own(above)["peak memory"]["largest"] == profile.inclusive("peak_bytes")[above] == 7
    assert own(node)["cache"]["mean"] == 6
    assert own(node)["cache"]["largest"] is None
    assert "cache" not in own(above)


def test_a_python_function_is_split_by_its_lines(ask: Ask, training: Profile) -> None:
    node = int(training.query().name("train").nodes()[0])
    answer = ask(f"node?source={node}")
    expected = {row.line: row.inclusive for row in by_line(training).rows if row.name == "train"}
    assert {each["line"]: each["inclusive"] for each in answer["lines"]} == expected
    assert answer["contexts"] == 4


def test_costs_of_source_lines_are_those_of_the_summary(
    ask: Ask, training: Profile, training_folder: Path
) -> None:
    script = str(training_folder / "train.py")
    answer = ask(f"source?path={script}")
    rows = [row for row in by_line(training).rows if row.file == script]
    assert {cost["line"]: cost["inclusive"] for cost in answer["costs"]} == {
        row.line: row.inclusive for row in rows
    }
    text = (training_folder / "train.py").read_text().splitlines()
    assert answer["parts"] == [{"first": 1, "lines": text}]
    assert answer["note"] == ""
    assert answer["shown"] == "train.py"


def test_files_of_the_user_come_first(ask: Ask) -> None:
    listed = ask("files")["files"]
    assert {each["shown"] for each in listed[:2]} == {"train.py", "model.py"}
    assert [each["library"] for each in listed] == [False, False, True]
    assert listed[0]["exclusive"] >= listed[1]["exclusive"]


def test_an_empty_profile_is_answered(ask: Ask) -> None:
    assert ask("flame?file=1")["total"] == 0
    assert ask("flame?file=1&kind=bottom_up")["total"] == 0
    assert ask("table?file=1")["rows"] == []
    assert ask("files?file=1")["files"] == []


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("flame?file=7", "no profile 7"),
        ("flame?root=99999", "no node 99999"),
        ("flame?root=-1", "'root' must be a whole number"),
        ("flame?root=99999999999999999999", "'root' must be a whole number"),
        ("flame?kind=sideways", "no view 'sideways'"),
        ("flame?kind=callers", "needs the number of a frame"),
        ("flame?kind=callers&function=99999", "no frame 99999"),
        ("flame?metric=gpu", "no measure 'gpu'"),
        ("flame?metric=call_duration_ns", "no measure 'call_duration_ns'"),
        ("flame?hidden=paint", "no layer 'paint'"),
        ("flame?phase=lunar", "no phase 'lunar'"),
        ("flame?pivot=moon", "cannot split the tree by 'moon'"),
        ("flame?library=yes", "'library' must be 0 or 1"),
        ("flame?edits=hide:99999", "no frame 99999"),
        ("flame?edits=paint:1", "cannot read the edit"),
        ("flame?edits=" + ",".join(["hide:1"] * 101), "101 edits"),
        ("node?source=99999", "no node 99999"),
        ("table?by=moon", "no table by 'moon'"),
        ("table?metric=call_duration_ns.count", "tables show totals"),
        ("source?path=/etc/passwd", "names no such source file"),
    ],
)
def test_bad_questions_are_refused_with_the_reason(ask: Ask, question: str, message: str) -> None:
    with pytest.raises(QueryError, match=re.escape(message)):
        ask(question)


def test_a_difference_needs_two_profiles(training_folder: Path) -> None:
    profiles = OpenProfiles.open([training_folder / "train.dcprof"])
    with pytest.raises(QueryError, match="needs two profiles"):
        asked(profiles, "flame?kind=difference")


def test_a_large_tree_is_cut_to_its_visible_part() -> None:
    profile = random_profile(60_000, depth=30)
    profiles = OpenProfiles([OpenProfile.of_memory(profile, "large")])
    answer = asked(profiles, "flame?px=2560")
    values = answer["nodes"]["value"]
    assert min(values) >= answer["threshold"] >= answer["total"] / (2 * 2560)
    assert answer["left_out"] > 0
    deep = max(range(len(values)), key=lambda place: answer["nodes"]["depth"][place])
    source = answer["nodes"]["source"][deep]
    zoomed = asked(profiles, f"flame?px=2560&root={source}")
    assert zoomed["above"] == answer["nodes"]["depth"][deep]
    assert zoomed["nodes"]["source"][zoomed["above"]] == source
    assert zoomed["nodes"]["value"][zoomed["above"]] == values[deep]


@pytest.mark.parametrize(
    ("with_operator", "first"), [(True, "host_time_ns"), (False, "gpu_time_ns")]
)
def test_the_first_measure_has_values(
    make_profile: Any, *, with_operator: bool, first: str
) -> None:
    profile = gpu_profile(make_profile, with_operator=with_operator)
    profiles = OpenProfiles([OpenProfile.of_memory(profile, "gpu")])
    assert measures(profile)[0].key == first
    assert asked(profiles, f"flame?metric={first}")["total"] > 0


def test_bottom_up_reports_what_it_omits(make_profile: Any) -> None:
    frames = [Frame(FrameKind.OPERATOR, f"op_{place}") for place in range(20_000)]
    profile = make_profile(
        [0] * 20_001,
        [Frame(FrameKind.ROOT, ""), *frames],
        host_time_ns={place + 1: 1_000 for place in range(20_000)},
    )
    profiles = OpenProfiles([OpenProfile.of_memory(profile, "wide")])
    answer = asked(profiles, "flame?kind=bottom_up&px=512")
    assert answer["left_out"] == 20_000
    # At least as wide as the omitted boxes, whose cost is not exclusive to the root.
    assert answer["threshold"] == 20_000_000 // (2 * 4 * 512)
    assert answer["nodes"]["exclusive"] == [0]
