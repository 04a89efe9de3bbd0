"""Aggregation by operator, module, scope, line and phase, compared with its definition."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepcontext.errors import QueryError
from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.summaries.lines import by_line
from deepcontext.profiler.summaries.modules import by_module
from deepcontext.profiler.summaries.operators import by_operator
from deepcontext.profiler.summaries.phases import PHASES, by_phase
from deepcontext.profiler.summaries.scopes import by_scope
from deepcontext.profiler.summaries.steps import step_times
from tests.lines_run import lines_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.groups import Group, GroupTable

USER_FILE = "/home/me/train.py"
LIBRARY_FILE = "/usr/lib/python3.11/site-packages/torch/nn/modules/linear.py"

FRAMES = st.one_of(
    st.builds(Frame, st.just(FrameKind.OPERATOR), st.sampled_from(["aten::mm", "aten::add"])),
    st.builds(Frame, st.just(FrameKind.MODULE), st.sampled_from(["Net", "Linear 'fc'"])),
    st.builds(Frame, st.just(FrameKind.SCOPE), st.sampled_from(["load", "aten::mm"])),
    st.builds(
        Frame,
        st.just(FrameKind.PYTHON),
        st.sampled_from(["f", "g"]),
        st.sampled_from([USER_FILE, LIBRARY_FILE]),
        st.integers(1, 3),
    ),
)


@dataclass(frozen=True)
class Case:
    parents: list[int]
    frames: list[Frame]
    phases: list[Phase]
    host_time_ns: dict[int, int]
    call_samples_ns: dict[int, list[int]]

    def path(self, node: int) -> list[int]:
        """Return the node and its ancestors, the node first."""
        path = [node]
        while path[-1]:
            path.append(self.parents[path[-1]])
        return path


@st.composite
def cases(draw: st.DrawFn) -> Case:
    count = draw(st.integers(1, 40))
    # Mostly the last node again, so that trees are deep and frames recur along paths.
    parents = [0] + [
        draw(st.one_of(st.just(node - 1), st.integers(0, node - 1))) for node in range(1, count)
    ]
    frames = [Frame(FrameKind.ROOT, ""), *(draw(FRAMES) for _ in range(1, count))]
    phases = [draw(st.sampled_from(list(Phase))) for _ in range(count)]
    nodes = st.integers(0, count - 1)
    large = st.integers(0, 2**55)  # sums need exact integers, beyond float64
    times = draw(st.dictionaries(nodes, st.one_of(st.integers(0, 9), large)))
    timed = st.lists(st.integers(0, 10**9), min_size=1, max_size=4)
    samples = draw(st.dictionaries(nodes, timed))
    return Case(parents, frames, phases, times, samples)


TABLES: dict[str, tuple[Callable[..., GroupTable], Callable[[Frame], Any]]] = {
    "operator": (
        by_operator,
        lambda frame: frame.name if frame.kind is FrameKind.OPERATOR else None,
    ),
    "module": (
        by_module,
        lambda frame: frame.name if frame.kind is FrameKind.MODULE else None,
    ),
    "scope": (
        by_scope,
        lambda frame: frame.name if frame.kind is FrameKind.SCOPE else None,
    ),
    "line": (
        by_line,
        lambda frame: (frame.file, frame.line) if frame.file == USER_FILE else None,
    ),
}


@pytest.mark.parametrize("table", TABLES)
@given(case=cases())
def test_groups_equal_their_definition(make_profile: Any, table: str, case: Case) -> None:
    aggregate, key_of = TABLES[table]
    profile = _profile(make_profile, case)
    result = aggregate(profile)
    expected = _groups_by_definition(case, key_of)
    found = {(row.file, row.line) if table == "line" else row.name: row for row in result.rows}
    assert len(found) == len(result.rows) == result.row_count
    if table == "line":  # lines without a value were only sampled
        expected = {key: group for key, group in expected.items() if group["inclusive"]}
    assert found.keys() == expected.keys()
    for key, group in expected.items():
        _assert_equal(found[key], group)
    assert result.total == sum(case.host_time_ns.values())


def _groups_by_definition(case: Case, key_of: Callable[[Frame], Any]) -> dict[Any, dict[str, Any]]:
    keys = [key_of(frame) for frame in case.frames]
    groups: dict[Any, dict[str, Any]] = {}
    for node, key in enumerate(keys):
        if key is not None:
            group = groups.setdefault(key, _new_group())
            group["contexts"] += 1
            group["samples"] += case.call_samples_ns.get(node, [])
    for node, value in case.host_time_ns.items():
        on_path = [keys[each] for each in case.path(node) if keys[each] is not None]
        for key in set(on_path):
            groups[key]["inclusive"] += value
            groups[key]["phases"][case.phases[node] or Phase.OTHER] += value
        if on_path:
            groups[on_path[0]]["exclusive"] += value
    return groups


def _new_group() -> dict[str, Any]:
    return {
        "inclusive": 0,
        "exclusive": 0,
        "contexts": 0,
        "samples": [],
        "phases": dict.fromkeys(PHASES, 0),
    }


def _assert_equal(row: Group, group: dict[str, Any]) -> None:
    assert row.inclusive == group["inclusive"]
    assert row.exclusive == group["exclusive"]
    assert row.contexts == group["contexts"]
    assert dict(zip(PHASES, row.phases, strict=True)) == group["phases"]
    samples = group["samples"]
    if not samples:
        assert row.calls is None
        return
    assert row.calls is not None
    assert row.calls.count == len(samples)
    assert row.calls.total == sum(samples)
    assert row.calls.mean == pytest.approx(statistics.mean(samples))
    assert (row.calls.minimum, row.calls.maximum) == (min(samples), max(samples))
    if len(samples) == 1:
        assert row.calls.sd is None
    else:
        expected = statistics.stdev(samples)
        assert row.calls.sd == pytest.approx(expected, rel=1e-6, abs=1e-3)


@given(case=cases())
def test_phases_equal_their_definition_and_add_up(make_profile: Any, case: Case) -> None:
    profile = _profile(make_profile, case)
    rows = by_phase(profile)
    expected = dict.fromkeys(PHASES, (0, 0))
    for node, phase in enumerate(case.phases):
        value, calls = expected[phase or Phase.OTHER]
        if case.frames[node].kind is FrameKind.OPERATOR:
            calls += len(case.call_samples_ns.get(node, []))
        expected[phase or Phase.OTHER] = value + case.host_time_ns.get(node, 0), calls
    assert {row.phase: (row.value, row.operator_calls) for row in rows} == expected
    assert [row.phase for row in rows] == list(PHASES)


@given(case=cases())
def test_exclusive_values_and_the_rest_add_up_to_the_total(make_profile: Any, case: Case) -> None:
    profile = _profile(make_profile, case)
    table = by_operator(profile)
    outside = sum(
        value
        for node, value in case.host_time_ns.items()
        if all(case.frames[each].kind is not FrameKind.OPERATOR for each in case.path(node))
    )
    assert sum(row.exclusive for row in table.rows) + outside == table.total


def _profile(make_profile: Any, case: Case) -> Profile:
    profile: Profile = make_profile(
        case.parents,
        case.frames,
        phases=case.phases,
        host_time_ns=case.host_time_ns,
        call_samples_ns=case.call_samples_ns,
    )
    return profile


def test_recursion_is_not_counted_twice(make_profile: Any) -> None:
    line = Frame(FrameKind.PYTHON, "walk", USER_FILE, 7)
    operator = Frame(FrameKind.OPERATOR, "aten::add")
    profile = make_profile(
        [0, 0, 1, 2, 3, 1],
        [Frame(FrameKind.ROOT, ""), line, line, line, operator, operator],
        host_time_ns={4: 100, 5: 10},
    )
    (row,) = by_line(profile).rows
    assert (row.inclusive, row.exclusive, row.contexts) == (110, 110, 3)
    assert (row.name, row.file, row.line) == ("walk", USER_FILE, 7)


def test_backward_below_its_forward_operator_counts_for_the_line(make_profile: Any) -> None:
    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.PYTHON, "train", USER_FILE, 3),
        Frame(FrameKind.OPERATOR, "aten::addmm"),
        Frame(FrameKind.OPERATOR, "AddmmBackward0"),
    ]
    phases = [Phase.NONE, Phase.NONE, Phase.FORWARD, Phase.BACKWARD]
    profile = make_profile([0, 0, 1, 2], frames, phases=phases, host_time_ns={2: 10, 3: 25})
    (row,) = by_line(profile).rows
    assert row.inclusive == 35
    assert row.phases[:2] == (10, 25)


def test_rows_are_the_largest_and_ties_keep_the_order_of_the_program(make_profile: Any) -> None:
    names = ["d", "c", "b", "a"]
    frames = [Frame(FrameKind.ROOT, ""), *(Frame(FrameKind.OPERATOR, name) for name in names)]
    profile = make_profile([0] * 5, frames, host_time_ns={1: 5, 2: 9, 3: 5, 4: 1})
    table = by_operator(profile, limit=3)
    assert [row.name for row in table.rows] == ["c", "d", "b"]
    assert table.row_count == 4


def test_lines_can_be_ordered_by_their_time_outside_deeper_lines(make_profile: Any) -> None:
    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.PYTHON, "main", USER_FILE, 1),
        Frame(FrameKind.PYTHON, "step", USER_FILE, 2),
        Frame(FrameKind.OPERATOR, "aten::mm"),
    ]
    profile = make_profile([0, 0, 1, 2], frames, host_time_ns={3: 50})
    assert [row.line for row in by_line(profile).rows] == [1, 2]
    assert [row.line for row in by_line(profile, largest="exclusive").rows] == [2, 1]


def test_step_times(make_profile: Any) -> None:
    root = [Frame(FrameKind.ROOT, "")]
    assert step_times(make_profile([0], root)) is None
    spread = step_times(make_profile([0], root, step_samples_ns=[10, 20, 60]))
    assert spread is not None
    assert (spread.count, spread.mean, spread.minimum, spread.maximum) == (3, 30, 10, 60)
    assert spread.sd == pytest.approx(statistics.stdev([10, 20, 60]))


def test_only_metrics_that_add_up_are_aggregated(make_profile: Any) -> None:
    profile = make_profile([0], [Frame(FrameKind.ROOT, "")])
    with pytest.raises(QueryError, match=r"'call_duration_ns' describes .*: host_time_ns"):
        by_operator(profile, "call_duration_ns")
    with pytest.raises(QueryError, match="nothing_ns"):
        by_phase(profile, "nothing_ns")


def test_the_number_of_passes_does_not_grow_with_the_depth(make_profile: Any) -> None:
    """A pass for each level would be a loop of 10,000 passes."""
    flat, deep = (_large_profile(make_profile, reach) for reach in (20_000, 3))
    by_line(flat)  # loads what it needs
    assert lines_run(lambda: by_line(deep)) < 5_000 + lines_run(lambda: by_line(flat))


def _large_profile(make_profile: Any, reach: int) -> Profile:
    """Return a profile of 20,000 nodes, whose parents are at most `reach` nodes before them."""
    count = 20_000
    rng = np.random.default_rng(0)
    parents = np.maximum(np.arange(count) - rng.integers(1, reach, count), 0)
    names = [Frame(FrameKind.OPERATOR, f"aten::op{index}") for index in range(500)]
    names += [Frame(FrameKind.PYTHON, "f", USER_FILE, index) for index in range(1, 500)]
    frames = [names[index] for index in rng.integers(0, len(names), count)]
    times = dict.fromkeys(range(0, count, 3), 7)
    profile: Profile = make_profile(parents, frames, host_time_ns=times)
    return profile
