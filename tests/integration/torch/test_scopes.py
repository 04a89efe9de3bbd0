"""Scopes: `record_function` and `deepcontext.scope` are frames where the program opened them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import deepcontext
from deepcontext.profiler.format.frame import FrameKind, Phase

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MAKERS = [
    pytest.param(torch.profiler.record_function, id="record_function"),
    pytest.param(deepcontext.scope, id="deepcontext.scope"),
]
scopes = pytest.mark.parametrize("scope", _MAKERS)
Scope = "Callable[[str], Any]"


def nested(scope: Callable[[str], Any]) -> None:
    torch.neg(torch.ones(1))
    with scope("outer"):
        torch.neg(torch.ones(1))
        with scope("inner"):
            torch.sin(torch.ones(1))
        helper()
    torch.neg(torch.ones(1))


def helper() -> None:
    torch.ceil(torch.ones(1))


@scopes
def test_a_scope_is_below_the_line_that_opened_it(record: Any, scope: Any) -> None:
    """And the function goes on inside: its frame is repeated below the scope."""
    recording = record(nested, scope)
    outer = ['nested: with scope("outer"):', "<outer>"]
    inner = [*outer, 'nested: with scope("inner"):', "<inner>"]
    assert recording.paths("outer") == [outer]
    assert recording.paths("aten::neg") == [
        ["nested: torch.neg(torch.ones(1))", "aten::neg"],
        [*outer, "nested: torch.neg(torch.ones(1))", "aten::neg"],
        ["nested: torch.neg(torch.ones(1))", "aten::neg"],
    ]
    assert recording.paths("aten::sin") == [
        [*inner, "nested: torch.sin(torch.ones(1))", "aten::sin"]
    ]
    assert recording.paths("aten::ceil") == [
        [*outer, "nested: helper()", "helper: torch.ceil(torch.ones(1))", "aten::ceil"]
    ]
    assert recording.calls("outer") == recording.calls("inner") == 1


def decorated(scope: Callable[[str], Any]) -> None:
    @scope("work")
    def work() -> None:
        torch.neg(torch.ones(1))

    for _ in range(3):
        work()


@scopes
def test_a_scope_as_decorator(record: Any, scope: Any) -> None:
    recording = record(decorated, scope)
    (path,) = recording.paths("aten::neg")
    assert path == [
        "decorated: work()",
        "<work>",
        "decorated: work()",
        "work: torch.neg(torch.ones(1))",
        "aten::neg",
    ]
    assert recording.calls("work") == 3


def raise_inside(scope: Callable[[str], Any]) -> None:
    try:
        with scope("outer"), scope("inner"):
            torch.ones(2) @ torch.ones(3)
    except RuntimeError:
        torch.neg(torch.ones(1))
    torch.sin(torch.ones(1))


@scopes
def test_an_exception_closes_scopes_and_operators(record: Any, scope: Any) -> None:
    recording = record(raise_inside, scope)
    assert recording.paths("aten::neg") == [["raise_inside: torch.neg(torch.ones(1))", "aten::neg"]]
    assert recording.paths("aten::sin") == [["raise_inside: torch.sin(torch.ones(1))", "aten::sin"]]
    assert recording.calls("outer") == recording.calls("inner") == 1


class Split:
    """Opens a scope in one method and closes it in another."""

    def __init__(self, scope: Any) -> None:
        self._scope = scope

    def begin(self) -> None:
        self._scope.__enter__()

    def end(self) -> None:
        self._scope.__exit__(None, None, None)


def across_functions(scope: Callable[[str], Any]) -> None:
    split = Split(scope("span"))
    split.begin()
    torch.neg(torch.ones(1))
    helper()
    split.end()
    torch.sin(torch.ones(1))


@scopes
def test_a_scope_that_outlives_the_function_that_opened_it(record: Any, scope: Any) -> None:
    recording = record(across_functions, scope)
    span = ["across_functions: split.begin()", "Split.begin: self._scope.__enter__()", "<span>"]
    assert recording.paths("span") == [span]
    (neg,) = recording.paths("aten::neg")
    assert neg == [*span, "across_functions: torch.neg(torch.ones(1))", "aten::neg"]
    (ceil,) = recording.paths("aten::ceil")
    assert ceil == [
        *span,
        "across_functions: helper()",
        "helper: torch.ceil(torch.ones(1))",
        "aten::ceil",
    ]
    assert recording.paths("aten::sin") == [
        ["across_functions: torch.sin(torch.ones(1))", "aten::sin"]
    ]


def closed_out_of_order(scope: Callable[[str], Any]) -> None:
    first, second = scope("first"), scope("second")
    first.__enter__()
    second.__enter__()
    torch.neg(torch.ones(1))
    first.__exit__(None, None, None)
    torch.sin(torch.ones(1))
    second.__exit__(None, None, None)
    torch.ceil(torch.ones(1))


@scopes
def test_scopes_closed_out_of_order(record: Any, scope: Any) -> None:
    recording = record(closed_out_of_order, scope)
    (neg,) = recording.paths("aten::neg")
    assert [text for text in neg if text.startswith("<")] == ["<first>", "<second>"]
    (after,) = recording.paths("aten::sin")
    assert [text for text in after if text.startswith("<")] == ["<second>"]
    assert recording.paths("aten::ceil") == [
        ["closed_out_of_order: torch.ceil(torch.ones(1))", "aten::ceil"]
    ]
    assert recording.calls("first") == recording.calls("second") == 1


def hand_over_hand(scope: Callable[[str], Any], count: int) -> None:
    last = None
    for number in range(count):
        stage = scope(f"stage {number % 2}")
        stage.__enter__()
        if last:
            last.__exit__(None, None, None)
        last = stage
        torch.sin(torch.ones(1))
    if last:
        last.__exit__(None, None, None)


@scopes
@pytest.mark.parametrize("is_mode_on", [False, True])
def test_ranges_that_overlap_hand_over_hand(record: Any, scope: Any, is_mode_on: bool) -> None:  # noqa: FBT001
    """No path and no node is added by a longer run."""

    def work(count: int) -> None:
        with Pass() if is_mode_on else contextlib.nullcontext():
            hand_over_hand(scope, count)

    with Pass():  # imports at the first time
        hand_over_hand(torch.profiler.record_function, 1)
    short, long = (record(work, count) for count in (10, 500))
    assert len(long.profile.tree) == len(short.profile.tree)
    for path in long.paths("aten::sin"):
        assert len([text for text in path if text.startswith("<stage")]) == 1
    assert long.calls("aten::sin") == 500
    assert long.calls("stage 0") == long.calls("stage 1") == 250


class Pass(TorchDispatchMode):
    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def under_mode(scope: Callable[[str], Any]) -> None:
    value = torch.ones(2, 2)
    with Pass():
        for name in ("A", "B"):
            with scope(name):
                torch.mm(value, value)
                with scope("inner"):
                    torch.mm(value, value)
    torch.mm(value, value)


@scopes
def test_ranges_under_a_dispatch_mode(record: Any, scope: Any) -> None:
    """A mode's second pass through an operator is no call, and its Python is no operator."""
    recording = record(under_mode, scope)
    assert recording.calls("aten::mm") == 5
    inside = [
        [text for text in path if text in {"<A>", "<B>", "<inner>"}]
        for path in recording.paths("aten::mm")
    ]
    assert sorted({tuple(path) for path in inside}) == [
        (),
        ("<A>",),
        ("<A>", "<inner>"),
        ("<B>",),
        ("<B>", "<inner>"),
    ]
    operators = recording.profile.query().kind("operator")
    assert operators.name("PythonDispatchMode").nodes().size == 0
    phases = {
        recording.profile.tree.phase[int(node)] for node in operators.name("aten::mm").nodes()
    }
    assert phases == {Phase.FORWARD}


class Burning(TorchDispatchMode):
    """Takes half a second of its thread's processor before the first product."""

    has_burnt = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if "mm" in str(func) and not self.has_burnt:
            self.has_burnt = True
            end = time.thread_time() + 0.5
            while time.thread_time() < end:
                pass
        return func(*args, **(kwargs or {}))


def multiply_under_burning() -> None:
    value = torch.ones(2, 2)
    with Burning():
        for _ in range(3):
            torch.mm(value, value)


def test_what_a_dispatch_mode_does_is_time_of_its_lines() -> None:
    part = deepcontext.profile(None)
    with part:
        multiply_under_burning()
    profile = part.result
    assert profile is not None
    names = [profile.frame(node).name for node in range(len(profile.tree.parent))]
    is_burning = np.array(["Burning" in name for name in names])
    sampled = profile.exclusive("sampled_cpu_time_ns")
    burnt = int(sampled[profile.tree.at_or_below(is_burning)].sum())
    assert burnt >= 0.5 * 0.5e9
    (mode,) = {int(n) for n in profile.query().name("PythonDispatchMode").nodes()}
    assert profile.exclusive("host_time_ns")[mode] == 0
    assert profile.exclusive("call_duration_ns")[mode] >= burnt
    in_operators = profile.query().kind("operator").total("host_time_ns")
    assert in_operators < profile.exclusive("call_duration_ns")[mode]


def batches(scope: Callable[[str], Any]) -> Iterator[Any]:
    with scope("produce"):
        for value in range(3):
            yield torch.full((1,), float(value))


def consume(scope: Callable[[str], Any]) -> None:
    for batch in batches(scope):
        torch.neg(batch)
    torch.sin(torch.ones(1))


@scopes
def test_a_scope_that_a_generator_holds_open(record: Any, scope: Any) -> None:
    """It is open while the consumer runs, too: that is what the program says."""
    recording = record(consume, scope)
    assert recording.calls("produce") == 1
    assert recording.calls("aten::full") == 3
    assert all(path[-2] == "consume: torch.neg(batch)" for path in recording.paths("aten::neg"))
    assert recording.paths("aten::sin") == [["consume: torch.sin(torch.ones(1))", "aten::sin"]]


async def task(scope: Callable[[str], Any], name: str, operator: Any) -> None:
    for _ in range(3):
        with scope(name):
            operator(torch.ones(1))
        await asyncio.sleep(0)
        operator(torch.ones(1))


def run_tasks(scope: Callable[[str], Any]) -> None:
    async def both() -> None:
        await asyncio.gather(task(scope, "left", torch.neg), task(scope, "right", torch.sin))

    asyncio.run(both())


@scopes
def test_scopes_of_tasks_that_take_turns(record: Any, scope: Any) -> None:
    recording = record(run_tasks, scope)
    for name, scope_name in (("aten::neg", "left"), ("aten::sin", "right")):
        inside = [path for path in recording.paths(name) if f"<{scope_name}>" in path]
        outside = [path for path in recording.paths(name) if f"<{scope_name}>" not in path]
        assert [path[-3:-1] for path in inside] == [
            [f"<{scope_name}>", "task: operator(torch.ones(1))"]
        ]
        assert [path[-2] for path in outside] == ["task: operator(torch.ones(1))"]
        assert recording.calls(name) == 6


def many_scopes(count: int) -> None:
    for _ in range(count):
        with deepcontext.scope("step"):
            torch.neg(torch.ones(1))


def test_a_scope_in_a_loop_is_one_frame(record: Any) -> None:
    recording = record(many_scopes, 50)
    node = recording.only(FrameKind.SCOPE, "step")
    assert recording.count(node) == 50


def leave_open() -> None:
    torch.profiler.record_function("forgotten").__enter__()
    deepcontext.scope("lost").__enter__()


def left_open() -> None:
    leave_open()
    torch.neg(torch.ones(1))


def test_scopes_that_are_never_closed(record: Any) -> None:
    recording = record(left_open)
    (path,) = recording.paths("aten::neg")
    assert path[-1] == "aten::neg"
    again = record(nested, deepcontext.scope)
    assert again.paths("outer") == [['nested: with scope("outer"):', "<outer>"]]


def mark_steps(count: int) -> None:
    for _ in range(count):
        torch.neg(torch.ones(1))
        deepcontext.step()


def test_steps_are_counted_and_timed(record: Any) -> None:
    recording = record(mark_steps, 5)
    assert recording.profile.run.steps == 5
    rows = recording.profile.metrics["step_time_ns"]
    assert rows.node.tolist() == [0]
    assert rows.count.tolist() == [4]


def test_marks_outside_a_session_do_nothing() -> None:
    deepcontext.step()
    with deepcontext.scope("alone"):
        torch.neg(torch.ones(1))


def test_a_scope_open_across_stop_and_start(record: Any) -> None:
    scope = deepcontext.scope("early")
    old = torch.profiler.record_function("old")
    deepcontext.start()
    scope = deepcontext.scope("early")
    scope.__enter__()
    old.__enter__()
    deepcontext.stop()
    deepcontext.start()
    torch.neg(torch.ones(1))
    scope.__exit__(None, None, None)
    old.__exit__(None, None, None)
    torch.sin(torch.ones(1))
    deepcontext.stop()
    recording = record(nested, deepcontext.scope)
    assert recording.calls("outer") == 1
