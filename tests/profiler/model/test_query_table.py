"""Tables of a query, compared with a direct implementation of their definition."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.model.query_table import GROUPINGS

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.model.query_table import Grouping
    from tests.conftest import MakeProfile

FILE = "/home/me/train.py"


@pytest.fixture
def profile(make_profile: MakeProfile) -> Profile:
    """A recursive function whose two lines run operators, one of them inside a module."""
    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.PYTHON, "walk", FILE, 3),
        Frame(FrameKind.OPERATOR, "aten::add"),
        Frame(FrameKind.PYTHON, "walk", FILE, 3),
        Frame(FrameKind.MODULE, "Linear 'fc'"),
        Frame(FrameKind.OPERATOR, "aten::add"),
        Frame(FrameKind.OPERATOR, "aten::add"),
        Frame(FrameKind.OPERATOR, "aten::add"),
    ]
    return make_profile(
        [0, 0, 1, 1, 3, 4, 5, 0],
        frames,
        host_time_ns={2: 1, 5: 10, 6: 100, 7: 1000},
        call_samples_ns={2: [1, 3], 5: [10], 6: [100], 7: [1000, 1002]},
    )


def test_by_name_counts_an_operator_inside_itself_once(profile: Profile) -> None:
    (row,) = profile.query().kind("operator").table("host_time_ns", by="name")
    assert (row.key, row.nodes, row.node) == ("aten::add", 4, 7)
    assert row.frame == Frame(FrameKind.OPERATOR, "aten::add")
    assert (row.exclusive, row.inclusive) == (1111, 1111)


def test_by_name_gives_the_spread_of_all_calls(profile: Profile) -> None:
    (row,) = profile.query().kind("operator").table("call_duration_ns")
    calls = [1, 3, 10, 100, 1000, 1002]
    assert row.count == len(calls)
    assert row.spread is not None
    assert (row.spread.minimum, row.spread.maximum) == (1, 1002)
    assert row.spread.mean == pytest.approx(statistics.mean(calls))
    assert row.spread.sd == pytest.approx(statistics.stdev(calls))


def test_by_line_takes_the_nearest_python_frame_and_counts_recursion_once(profile: Profile) -> None:
    first, second = profile.query().table("host_time_ns", by="line")
    assert (first.key, first.frame, first.exclusive, first.inclusive) == ("", None, 1000, 1111)
    assert (second.key, second.exclusive, second.inclusive) == (f"{FILE}:3", 111, 111)


def test_by_module_takes_the_nearest_module(profile: Profile) -> None:
    outside, inside = profile.query().kind("operator").table(by="module")
    assert (outside.key, outside.exclusive, outside.nodes) == ("", 1001, 2)
    assert (inside.key, inside.exclusive, inside.nodes) == ("Linear 'fc'", 110, 2)


def test_by_path_gives_every_node_its_row(profile: Profile) -> None:
    rows = profile.query().kind("operator").table(by="path", limit=2)
    assert [(row.key, row.node, row.exclusive) for row in rows] == [
        ("aten::add", 7, 1000),
        ("walk > walk > Linear 'fc' > aten::add > aten::add", 6, 100),
    ]


def test_a_table_of_no_nodes_is_empty(profile: Profile) -> None:
    assert profile.query().name("nothing").table() == []


def key_of(profile: Profile, by: str, node: int) -> object:
    """Return the group of a node, by its definition."""
    frame, path = profile.frame(node), profile.path(node)
    match by:
        case "name":
            return (frame.kind, frame.name)
        case "path":
            return node
        case "line":
            lines = [each for each in path if each.kind is FrameKind.PYTHON]
            return (lines[-1].file, lines[-1].line) if lines else ""
        case _:
            modules = [each.name for each in path if each.kind is FrameKind.MODULE]
            return modules[-1] if modules else ""


@pytest.mark.parametrize("by", GROUPINGS)
@given(data=st.data())
def test_rows_partition_the_selected_nodes(
    data: st.DataObject, by: Grouping, profiles: st.SearchStrategy[Profile]
) -> None:
    made = data.draw(profiles)
    query = made.query().where(lambda nodes: nodes % data.draw(st.integers(1, 3)) == 0)
    groups: dict[object, list[int]] = defaultdict(list)
    for node in query.nodes().tolist():
        groups[key_of(made, by, node)].append(node)
    exclusive, ends = made.exclusive("host_time_ns"), made.tree.subtree_end
    expected = []
    for nodes in groups.values():
        covered = {each for node in nodes for each in range(node, int(ends[node]))}
        best = max(nodes, key=lambda node: (exclusive[node], -node))
        expected.append((
            int(exclusive[nodes].sum()),
            int(exclusive[list(covered)].sum()),
            len(nodes),
            best,
        ))
    rows = query.table("host_time_ns", by=by)
    found = [(row.exclusive, row.inclusive, row.nodes, row.node) for row in rows]
    assert sorted(found) == sorted(expected)
    assert found == sorted(found, key=lambda row: (-row[0], row[3]))
    assert sum(row.exclusive for row in rows) == query.total("host_time_ns")
    assert [row.key for row in query.table(by=by, limit=2)] == [row.key for row in rows[:2]]
    for row in rows:
        assert row.spread is None or math.isclose(row.spread.mean, row.exclusive / row.count)
