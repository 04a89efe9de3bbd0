"""What ends a step in programs that say nothing about steps."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest
import torch
from torch import nn

import deepcontext
from deepcontext.profiler.format.step_source import StepSource
from deepcontext.profiler.summaries.steps import StepRule, step_rule, step_times

INPUT = torch.randn(2, 8)


def model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))


def rule_of(recording: Any) -> tuple[StepRule, int]:
    """Return what ends a step, and how many durations of steps are known."""
    rule = step_rule(recording.profile)
    assert rule is not None
    times = step_times(recording.profile)
    return rule, times.count if times else 0


def backward(of: nn.Module) -> None:
    of(INPUT).sum().backward()


def accumulate(steps: int, parts: int) -> None:
    trained = model()
    optimizer = torch.optim.SGD(trained.parameters())
    for _ in range(steps):
        for _ in range(parts):
            backward(trained)
        optimizer.step()
        optimizer.zero_grad()


def test_an_optimizer_ends_steps_and_accumulation_is_one(record: Any) -> None:
    rule, timed = rule_of(record(accumulate, 6, 3))
    assert (rule.source, rule.what) == (StepSource.OPTIMIZER, "Optimizer.step#SGD.step")
    assert (rule.count, timed) == (6, 5)
    assert rule.file == __file__
    assert rule.explain() == "what ends with Optimizer.step#SGD.step"


def several_in_a_loop(steps: int) -> None:
    trained = model()
    optimizers = [torch.optim.Adam([each]) for each in trained.parameters()]
    for _ in range(steps):
        backward(trained)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()


def test_optimizers_that_step_in_turn_end_one_step(record: Any) -> None:
    assert rule_of(record(several_in_a_loop, 5))[0].count == 5


def adversarial(steps: int) -> None:
    maker, judge = model(), model()
    of_maker = torch.optim.SGD(maker.parameters())
    of_judge = torch.optim.SGD(judge.parameters())
    for _ in range(steps):
        for _ in range(3):
            backward(judge)
            of_judge.step()
        backward(maker)
        of_maker.step()


def test_of_two_models_the_one_that_steps_more_often_counts(record: Any) -> None:
    assert rule_of(record(adversarial, 4))[0].count == 12


def check_then_train() -> None:
    trained = model()
    with torch.no_grad():
        for _ in range(20):
            trained(INPUT)
    accumulate(3, 1)


def test_steps_of_a_worse_source_are_forgotten(record: Any) -> None:
    rule, timed = rule_of(record(check_then_train))
    assert (rule.source, rule.count, timed) == (StepSource.OPTIMIZER, 3, 2)


def infer(calls: int) -> None:
    used = model()
    with torch.no_grad():
        for _ in range(calls):
            used(INPUT)


def test_without_an_optimizer_the_outermost_module_counts(record: Any) -> None:
    rule, timed = rule_of(record(infer, 10))
    # The end of the last call is not seen.
    assert (rule.source, rule.what, rule.count, timed) == (StepSource.MODULE, "Sequential", 9, 8)
    assert rule.line > 0


class Unrolled(nn.Module):
    """The first operator of `forward` is in its loop."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(8, 8)

    def forward(self, inputs: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        for moment in range(5):
            state = self.cell(inputs[:, moment], state)
        return state


class Overriding(Unrolled):
    """Python code calls `torch.nn.Module.__call__`."""

    def __call__(self, *arguments: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = super().__call__(*arguments)
        return result


def unroll(kind: type[Unrolled], calls: int) -> None:
    used, inputs, state = kind(), torch.randn(2, 5, 8), torch.zeros(2, 8)
    with torch.no_grad():
        for _ in range(calls):
            used(inputs, state)


@pytest.mark.parametrize(
    "kind",
    [
        Unrolled,
        pytest.param(
            Overriding,
            marks=pytest.mark.skipif(
                sys.version_info < (3, 12), reason="Python 3.11 calls functions without a slot"
            ),
        ),
    ],
)
def test_a_pass_of_a_loop_in_forward_is_no_call_of_the_module(
    record: Any, kind: type[Unrolled]
) -> None:
    assert rule_of(record(unroll, kind, 10))[0].count == 9
    record(unroll, kind, 1)
    assert rule_of(record(unroll, kind, 10))[0].count == 9


def train_and_mark(steps: int) -> None:
    trained = model()
    optimizer = torch.optim.SGD(trained.parameters())
    for number in range(2 * steps):
        backward(trained)
        optimizer.step()
        if number % 2:
            deepcontext.step()


def test_marks_come_before_optimizers(record: Any) -> None:
    recording = record(train_and_mark, 4)
    rule, timed = rule_of(recording)
    assert (rule.source, rule.count, timed) == (StepSource.MARK, 4, 3)
    assert recording.profile.run.steps == 4


def engine(iterations: int) -> None:
    used = model()
    with torch.no_grad():
        for _ in range(iterations):
            with torch.profiler.record_function("gpu_model_runner: forward"):
                used(INPUT)
                used(INPUT)


def test_an_engines_scope_counts_before_its_modules(record: Any) -> None:
    rule, timed = rule_of(record(engine, 7))
    assert (rule.source, rule.count, timed) == (StepSource.ENGINE, 7, 6)


def side_by_side(threads: int, steps: int) -> None:
    barrier = threading.Barrier(threads)

    def work() -> None:
        barrier.wait()
        for _ in range(steps):
            deepcontext.step()

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def test_threads_that_step_side_by_side_count_once(record: Any) -> None:
    assert rule_of(record(side_by_side, 4, 50))[0].count == 50


@pytest.mark.parametrize("calls", [0, 1])
def test_a_program_that_never_steps_says_so(record: Any, calls: int) -> None:
    rule, timed = rule_of(record(infer, calls))
    assert (rule.source, rule.count, timed) == (StepSource.NONE, 0, 0)
    assert "unknown" in rule.explain()


def test_a_second_session_counts_anew(record: Any) -> None:
    record(accumulate, 6, 1)
    assert rule_of(record(infer, 4))[0].source is StepSource.MODULE
