"""Steps that are kept whole: which, and what their time lines hold."""

from __future__ import annotations

import io
import linecache
import threading
from typing import TYPE_CHECKING, Any

import pytest
import torch
from rich.console import Console

import deepcontext
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.model.exemplars import ExemplarReason
from deepcontext.profiler.summaries.kept_steps import causes
from deepcontext.ui.report.steps import render_steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext.profiler.model.exemplars import Exemplar, Lane

STEPS = 120
SLOW = 70


def names(recording: Any, lane: Lane) -> list[str]:
    return [recording.frame(node).name for node in lane.node.tolist()]


def kept(recording: Any, number: int) -> Exemplar:
    (found,) = (each for each in recording.profile.exemplars if each.number == number)
    return found


def make_model() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    model = torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.LayerNorm(16), torch.nn.ReLU(), torch.nn.Linear(16, 4)
    )
    return model, torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)


def train(during: Callable[[int], object], steps: int = STEPS) -> None:
    model, optimizer = make_model()
    batch = torch.ones(4, 8)
    for number in range(1, steps + 1):
        loss = model(batch).square().mean()
        loss.backward()
        during(number)
        optimizer.step()
        optimizer.zero_grad()


def stall(number: int) -> None:
    if number == SLOW:
        for _ in range(300):
            torch.linalg.svd(torch.ones(64, 64))


@pytest.mark.long
def test_the_slowest_steps_are_kept_with_what_made_them_slow(record: Any) -> None:
    recording = record(train, stall)
    slowest = max(recording.profile.exemplars, key=lambda each: each.duration_ns)
    assert slowest.number == SLOW
    assert ExemplarReason.SLOW in slowest.reasons
    (lane,) = recording.profile.lanes(slowest)
    assert names(recording, lane).count("aten::linalg_svd") == 300
    assert lane.known_from_ns == 0
    others = [each for each in recording.profile.exemplars if each.number != SLOW]
    for each in others:
        (lane,) = recording.profile.lanes(each)
        assert "aten::linalg_svd" not in names(recording, lane)
    reasons = [each.reasons for each in recording.profile.exemplars]
    assert sum(ExemplarReason.SLOW in each for each in reasons) == 8
    assert sum(ExemplarReason.RANDOM in each for each in reasons) == 8


@pytest.mark.long
def test_spans_are_nested_as_their_operators_are(record: Any) -> None:
    recording = record(train, stall)
    tree = recording.profile.tree
    (lane,) = recording.profile.lanes(kept(recording, SLOW))
    open_spans: list[tuple[int, int]] = []
    inside = 0
    for node, begin, duration in zip(lane.node, lane.begin_ns, lane.duration_ns, strict=True):
        while open_spans and open_spans[-1][1] <= begin:
            open_spans.pop()
        if open_spans and int(tree.parent[node]) == open_spans[-1][0]:
            inside += 1
        assert not open_spans or begin + duration <= open_spans[-1][1]
        open_spans.append((int(node), int(begin + duration)))
    assert inside > 100


def marked(number: int) -> None:
    deepcontext.step(keep=number == 41)


@pytest.mark.long
def test_the_program_may_mark_a_step(record: Any) -> None:
    recording = record(train, marked)
    exemplar = kept(recording, 41)
    assert ExemplarReason.MARKED in exemplar.reasons
    (lane,) = recording.profile.lanes(exemplar)
    assert "aten::linear" in names(recording, lane)


def test_without_a_time_line_no_step_is_kept(record: Any) -> None:
    recording = record(train, marked, timeline=False)
    assert recording.profile.exemplars == ()
    assert recording.counters["exemplar_copies"] == 0


def on_threads(count: int) -> None:
    """Let threads work in each step, beside each other."""
    turns = [threading.Barrier(count + 1) for _ in range(2)]

    def work() -> None:
        for _ in range(20):
            turns[0].wait()
            torch.neg(torch.ones(2))
            turns[1].wait()

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        torch.sin(torch.ones(2))
        turns[0].wait()
        turns[1].wait()
        deepcontext.step()
    for thread in threads:
        thread.join()


def test_each_thread_has_a_lane(record: Any) -> None:
    recording = record(on_threads, 3)
    for exemplar in recording.profile.exemplars:
        main, *others = recording.profile.lanes(exemplar)
        assert main.name == "MainThread"
        assert names(recording, main) == ["aten::ones", "aten::empty", "aten::fill_", "aten::sin"]
        assert [names(recording, lane) for lane in others] == [
            ["aten::ones", "aten::empty", "aten::fill_", "aten::neg"]
        ] * 3
        assert len({lane.recorder for lane in others}) == 3


def test_a_long_step_keeps_its_end_and_says_so(record: Any) -> None:
    def long() -> None:
        left = torch.ones(1)
        for _ in range(3):
            deepcontext.step()
        for _ in range(70_000):
            torch.neg(left)
        torch.sin(left)
        deepcontext.step()

    recording = record(long)
    exemplar = kept(recording, 4)
    (lane,) = recording.profile.lanes(exemplar)
    assert 60_000 < len(lane) < 70_000
    assert 0 < lane.known_from_ns < exemplar.duration_ns
    assert names(recording, lane)[-1] == "aten::sin"


def spans_after(steps: int) -> list[int]:
    value = torch.ones(4)
    deepcontext.start(cpu_rate=0)
    for _ in range(steps):
        torch.neg(torch.sin(value))
        deepcontext.step()
    profile = deepcontext.stop()
    return [sum(map(len, profile.lanes(exemplar))) for exemplar in profile.exemplars]


def test_many_steps_keep_what_few_keep() -> None:
    for steps in (200, 20_000):
        spans = spans_after(steps)
        assert 8 <= len(spans) <= 16
        assert set(spans) == {2}


def test_a_kept_step_agrees_with_pytorchs_trace(record: Any) -> None:
    """The same operators in the same order; the trace also has the ranges of the engine."""
    traced: list[str] = []

    def workload() -> None:
        model, optimizer = make_model()
        batch = torch.ones(4, 8)

        def step() -> None:
            model(batch).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()

        for _ in range(5):
            step()
            deepcontext.step()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
            deepcontext.step()
            step()
            deepcontext.step(keep=True)
        # Without what `events()` does: it drops an operator inside one of the same name.
        events = profiler.profiler.kineto_results.events()
        traced.extend(
            event.name()
            for event in sorted(events, key=lambda event: (event.start_ns(), -event.duration_ns()))
            if event.activity_type() in {"cpu_op", "user_annotation"}
        )

    recording = record(workload)
    (lane,) = recording.profile.lanes(kept(recording, 7))
    spans = [
        recording.frame(node).name
        for node in lane.node.tolist()
        if recording.frame(node).kind in {FrameKind.OPERATOR, FrameKind.SCOPE}
    ]
    assert "ReluBackward0" in spans
    wanted = [name for name in traced if not name.startswith("autograd::engine::evaluate_function")]
    assert spans == wanted


@pytest.mark.long
def test_a_slow_step_is_reported_with_its_line(record: Any) -> None:
    recording = record(train, stall)
    slowest = max(recording.profile.exemplars, key=lambda each: each.duration_ns)
    (cause,) = causes(recording.profile, [slowest])
    assert cause.line is not None
    assert "linalg.svd" in linecache.getline(cause.line.file, cause.line.line)
    console = Console(record=True, width=100, file=io.StringIO())
    render_steps(recording.profile, console=console)
    assert f"test_exemplars.py:{cause.line.line}" in console.export_text()
