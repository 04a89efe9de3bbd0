"""The query language, compared node by node with a direct implementation of its definition."""

from __future__ import annotations

import fnmatch
import operator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepcontext.errors import QueryError
from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from tests.synthetic import random_profile

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.model.query import Query
    from tests.conftest import MakeProfile

FILE = "/home/me/train.py"
PATTERNS = st.sampled_from(["*", "aten::op_0", "aten::*", "python_?", "*_1", "layer.0", "root_0"])


@pytest.fixture
def profile(make_profile: MakeProfile) -> Profile:
    """A step that runs two linear layers, one inside the encoder, and the backward of one."""
    frames = {
        0: Frame(FrameKind.ROOT, ""),
        1: Frame(FrameKind.PYTHON, "step", FILE, 12),
        2: Frame(FrameKind.MODULE, "Encoder 'encoder'"),
        3: Frame(FrameKind.MODULE, "Linear 'encoder.fc1'"),
        4: Frame(FrameKind.OPERATOR, "aten::addmm"),
        5: Frame(FrameKind.OPERATOR, "AddmmBackward0"),
        6: Frame(FrameKind.OPERATOR, "aten::mm"),
        7: Frame(FrameKind.MODULE, "Linear 'head[0]'"),
        8: Frame(FrameKind.OPERATOR, "aten::addmm"),
        9: Frame(FrameKind.SCOPE, "Optimizer.step#SGD.step"),
        10: Frame(FrameKind.OPERATOR, "aten::add_"),
    }
    backward = {5, 6}
    return make_profile(
        [0, 0, 1, 2, 3, 4, 5, 1, 7, 1, 9],
        list(frames.values()),
        phases=[Phase.BACKWARD if node in backward else Phase.FORWARD for node in frames],
        host_time_ns={4: 40, 5: 5, 6: 60, 8: 80, 9: 9, 10: 10},
        call_samples_ns={4: [50, 60], 6: [60], 8: [80]},
    )


def found(query: Query) -> list[int]:
    nodes: list[int] = query.nodes().tolist()
    return nodes


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        (lambda q: q, list(range(11))),
        (lambda q: q.kind("operator"), [4, 5, 6, 8, 10]),
        (lambda q: q.kind("scope", FrameKind.PYTHON), [1, 9]),
        (lambda q: q.phase("backward"), [5, 6]),
        (lambda q: q.phase(Phase.BACKWARD, "forward").kind("python"), [1]),
        (lambda q: q.name("aten::*mm"), [4, 6, 8]),
        (lambda q: q.name("aten::mm", "aten::add?"), [6, 10]),
        (lambda q: q.name("aten::add"), []),
        (lambda q: q.name("Linear 'head[0]'"), [7]),
        (lambda q: q.file("train.py"), [1]),
        (lambda q: q.file("*/train.py"), [1]),
        (lambda q: q.file("*/me/train.py", "*/other/*"), [1]),
        (lambda q: q.file("me/train.py"), []),
        (lambda q: q.line(12, 13), [1]),
        (lambda q: q.module("encoder"), [2, 3, 4, 5, 6]),
        (lambda q: q.module("encoder.*"), [3, 4, 5, 6]),
        (lambda q: q.module("Linear *").kind("operator"), [4, 5, 6, 8]),
        (lambda q: q.module("aten::addmm"), []),
        (lambda q: q.under("Optimizer.step*"), [10]),
        (lambda q: q.under("step").kind("module"), [2, 3, 7]),
        (lambda q: q.under(q.kind("operator")), [5, 6]),
        (lambda q: q.under(q.kind("scope"), "AddmmBackward0"), [6, 10]),
        (lambda q: q.under(), []),
        (lambda q: q.where(host_time_ns__gt=40), [6, 8]),
        (lambda q: q.where(host_time_ns__ge=40, host_time_ns__lt=80), [4, 6]),
        (lambda q: q.where(host_time_ns__inclusive__ge=100).kind("module"), [2, 3]),
        (lambda q: q.where(call_duration_ns__count__eq=2), [4]),
        (lambda q: q.kind("operator").where(lambda nodes: nodes % 2 == 0), [4, 6, 8, 10]),
        (lambda q: q.where(lambda nodes: nodes < 9, host_time_ns__ge=9), [4, 6, 8]),
    ],
)
def test_selects(profile: Profile, select: Callable[[Query], Query], expected: list[int]) -> None:
    query = select(profile.query())
    assert found(query) == expected
    assert query.count() == len(query) == len(expected)
    assert query.mask().tolist() == [node in expected for node in range(11)]
    assert [view.id for view in query] == expected


def test_a_query_is_not_changed_by_the_next_step(profile: Profile) -> None:
    operators = profile.query().kind("operator")
    before = found(operators)
    operators.phase("backward").where(host_time_ns__gt=10)
    assert found(operators) == before


def test_totals_count_nested_nodes_once(profile: Profile) -> None:
    query = profile.query().kind("operator")
    assert query.total() == query.total("host_time_ns") == 195
    # AddmmBackward0 and its mm lie below the first addmm.
    assert query.total("host_time_ns", inclusive=True) == 105 + 80 + 10
    assert profile.query().total(inclusive=True) == profile.query().total() == 204
    assert query.name("nothing").total(inclusive=True) == 0


def test_a_node_shows_its_frame_path_phase_and_values(profile: Profile) -> None:
    (view,) = profile.query().name("aten::mm")
    assert view.frame == Frame(FrameKind.OPERATOR, "aten::mm")
    assert [frame.name for frame in view.path][-3:] == ["aten::addmm", "AddmmBackward0", "aten::mm"]
    assert view.phase is Phase.BACKWARD
    assert view.value() == 60
    (view,) = profile.query().name("AddmmBackward0")
    assert view.value("host_time_ns", inclusive=True) == 65


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda q: q.kind("kernl"), r"unknown frame kind 'kernl'; known: root, thread, python"),
        (lambda q: q.phase("back"), r"unknown phase 'back'; known: none, forward, backward"),
        (lambda q: q.total("gpu_time_ns"), r"no metric 'gpu_time_ns'.*host_time_ns"),
        (lambda q: q.where(gpu_time_ns__gt=1), r"no metric 'gpu_time_ns'"),
        (lambda q: q.where(host_time_ns=1), r"cannot read 'host_time_ns'.*gt, ge"),
        (lambda q: q.where(host_time_ns__above=1), r"cannot read 'host_time_ns__above'"),
        (lambda q: q.where(host_time_ns__mean__gt=1), r"exclusive, inclusive, count"),
        (lambda q: q.where(lambda nodes: nodes), r"one bool for each of the 11 nodes"),
        (lambda q: q.where(lambda _: True), r"found shape \(\)"),
        (lambda q: q.table(by="colour"), r"cannot group by 'colour'; known: name, line"),
        (lambda q: q.under(random_profile(3).query()), r"another profile"),
    ],
)
def test_unknown_names_are_refused(
    profile: Profile, ask: Callable[[Any], object], message: str
) -> None:
    with pytest.raises(QueryError, match=message):
        ask(profile.query())


def keeps(profile: Profile, step: tuple[str, Any], node: int) -> bool:
    """Return whether a node meets one condition, by its definition."""
    frame, path = profile.frame(node), profile.path(node)
    result: object
    match step:
        case ("kind", kind):
            result = frame.kind is kind
        case ("phase", phase):
            result = profile.tree.phase[node] == phase
        case ("name", pattern):
            result = fnmatch.fnmatchcase(frame.name, pattern)
        case ("under", pattern):
            result = any(fnmatch.fnmatchcase(each.name, pattern) for each in path[:-1])
        case ("module", pattern):
            modules = [each.name for each in path if each.kind is FrameKind.MODULE]
            texts = modules + [name.split("'")[1] for name in modules]
            result = any(fnmatch.fnmatchcase(text, pattern) for text in texts)
        case ("line", line):
            result = frame.line == line
        case ("where", (comparison, bound)):
            result = comparison(profile.exclusive("host_time_ns")[node], bound)
        case _:
            raise AssertionError(step)
    return bool(result)


STEPS = st.one_of(
    st.tuples(st.just("kind"), st.sampled_from(FrameKind)),
    st.tuples(st.just("phase"), st.sampled_from(Phase)),
    st.tuples(st.sampled_from(["name", "under", "module"]), PATTERNS),
    st.tuples(st.just("line"), st.integers(0, 3)),
    st.tuples(
        st.just("where"),
        st.tuples(st.sampled_from([operator.gt, operator.le]), st.integers(0, 10**6)),
    ),
)


@given(data=st.data())
def test_steps_together_select_what_meets_every_condition(
    data: st.DataObject, profiles: st.SearchStrategy[Profile]
) -> None:
    made = data.draw(profiles)
    steps = data.draw(st.lists(STEPS, max_size=3))
    query = made.query()
    for name, argument in steps:
        if name == "where":
            comparison, bound = argument
            query = query.where(**{f"host_time_ns__{comparison.__name__}": bound})
        else:
            query = getattr(query, name)(argument)
    expected = [
        node for node in range(len(made.tree)) if all(keeps(made, step, node) for step in steps)
    ]
    assert found(query) == expected
    values = made.exclusive("host_time_ns")
    assert query.total() == values[expected].sum()
    subtrees = [range(node, int(made.tree.subtree_end[node])) for node in expected]
    covered = np.array(sorted({node for subtree in subtrees for node in subtree}), np.intp)
    assert query.total(inclusive=True) == values[covered].sum()
