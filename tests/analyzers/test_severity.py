"""A warning says what to change; a place where time goes, or a few milliseconds, is only mentioned."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest

from deepcontext.analyzers import Analyzer, Finding, Gain, Severity, run_analyzers
from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.format.memory_metrics import METRICS
from deepcontext.profiler.format.metric import SAMPLED_CPU_TIME_NS, SAMPLED_STEP
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.run_info import RunInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

MS = 1_000_000
ROOT = Frame(FrameKind.ROOT, "")
THREAD = Frame(FrameKind.THREAD, "MainThread")
LINE = Frame(FrameKind.PYTHON, "main", "train.py", 7)


def _operator(name: str) -> Frame:
    return Frame(FrameKind.OPERATOR, name)


def _line_of(
    make_profile: MakeProfile, names: Sequence[str], calls: Sequence[Sequence[int]]
) -> Profile:
    """Return a profile of one line that calls operators, with the durations of their calls, ns."""
    first = 3
    nodes = range(first, first + len(names))
    return make_profile(
        [-1, 0, 1, *(2 for _ in names)],
        [ROOT, THREAD, LINE, *map(_operator, names)],
        host_time_ns={node: sum(each) for node, each in zip(nodes, calls, strict=True)},
        call_samples_ns=dict(zip(nodes, calls, strict=True)),
    )


@pytest.mark.parametrize(
    ("name", "severity"),
    [
        ("aten::sort", Severity.HIGH),
        ("aten::copy_", Severity.HIGH),
        ("aten::gelu", Severity.INFO),
        ("aten::embedding", Severity.INFO),
        ("aten::rand", Severity.INFO),
        ("aten::max", Severity.INFO),
    ],
)
def test_a_hot_operator_is_a_warning_only_if_programs_can_avoid_it(
    make_profile: MakeProfile, name: str, severity: Severity
) -> None:
    profile = _line_of(make_profile, [name], [[50 * MS] * 20])
    (finding,) = run_analyzers(profile, only=["hotspot"])
    assert finding.severity is severity


def test_a_product_in_place_is_the_work_of_a_model(make_profile: MakeProfile) -> None:
    profile = _line_of(make_profile, ["aten::addmv_"], [[50 * MS] * 20])
    assert not run_analyzers(profile, only=["hotspot"])


def test_work_that_runs_once_cannot_run_less_often(make_profile: MakeProfile) -> None:
    (finding,) = run_analyzers(
        _line_of(make_profile, ["aten::sort"], [[900 * MS]]), only=["hotspot"]
    )
    assert finding.severity is Severity.INFO


@pytest.mark.parametrize(
    ("others", "severity"),
    [
        (["aten::cumsum", "aten::multinomial"], Severity.INFO),  # nucleus sampling adds up them all
        (["aten::multinomial"], Severity.HIGH),  # the best few are enough to draw from
        (["aten::cumsum"], Severity.HIGH),
    ],
)
def test_a_sort_is_needed_where_sorted_chances_are_added_up_for_a_draw(
    make_profile: MakeProfile, others: list[str], severity: Severity
) -> None:
    calls = [[50 * MS] * 20, *([MS] * 20 for _ in others)]
    profile = _line_of(make_profile, ["aten::sort", *others], calls)
    (finding,) = run_analyzers(profile, only=["hotspot"])
    assert finding.severity is severity


def test_a_sort_under_another_name_is_the_line_s_own(make_profile: MakeProfile) -> None:
    profile = make_profile(
        [-1, 0, 1, 2, 3],
        [ROOT, THREAD, LINE, _operator("aten::argsort"), _operator("aten::sort")],
        host_time_ns={4: 1000 * MS},
        call_samples_ns={3: [50 * MS] * 20, 4: [50 * MS] * 20},
    )
    (finding,) = run_analyzers(profile, only=["hotspot"])
    assert finding.severity is Severity.HIGH


def test_a_copy_inside_an_operator_is_not_the_program_s_to_avoid(make_profile: MakeProfile) -> None:
    profile = make_profile(
        [-1, 0, 1, 2, 3],
        [ROOT, THREAD, LINE, _operator("aten::_slow_conv2d_forward"), _operator("aten::copy_")],
        host_time_ns={4: 1000 * MS},
        call_samples_ns={3: [50 * MS] * 20, 4: [50 * MS] * 20},
    )
    (finding,) = run_analyzers(profile, only=["hotspot"])
    assert finding.severity is Severity.INFO


def test_the_first_call_is_no_hot_spot(make_profile: MakeProfile) -> None:
    others = [100 * MS] * 3
    slow, even = [[500 * MS, *[MS] * 20], others], [[25 * MS] * 21, others]
    names = ["aten::sort", "aten::mm"]
    assert not run_analyzers(_line_of(make_profile, names, slow), only=["hotspot"])
    assert run_analyzers(_line_of(make_profile, names, even), only=["hotspot"])


def _backward(make_profile: MakeProfile, forward: str, inner: str) -> Profile:
    """Return a profile of an operator whose backward takes ten times its forward, mostly in `inner`."""
    frames = [ROOT, THREAD, LINE, *map(_operator, [forward, "XBackward0", inner, "aten::mm"])]
    return make_profile(
        [-1, 0, 1, 2, 3, 4, 2],
        frames,
        phases=[*[Phase.FORWARD] * 4, Phase.BACKWARD, Phase.BACKWARD, Phase.FORWARD],
        host_time_ns={3: 10 * MS, 4: 10 * MS, 5: 90 * MS, 6: 100 * MS},
        call_samples_ns={3: [11 * MS] * 10, 4: [10 * MS] * 10, 5: [9 * MS] * 10},
    )


@pytest.mark.parametrize(
    ("forward", "inner", "severities"),
    [
        ("aten::expand", "aten::sum", [Severity.HIGH]),
        ("aten::slice", "aten::zeros", [Severity.HIGH]),
        ("aten::cumprod", "aten::div", [Severity.INFO]),
        ("aten::stack", "aten::select", []),
    ],
)
def test_a_slow_backward_is_a_warning_if_another_forward_avoids_its_work(
    make_profile: MakeProfile, forward: str, inner: str, severities: list[Severity]
) -> None:
    found = run_analyzers(_backward(make_profile, forward, inner), only=["forward_backward"])
    assert [each.severity for each in found] == severities


@pytest.mark.parametrize(
    ("filled_ms", "advice"), [(80, "sparse=True) with SGD"), (10, "table.index_select(0")]
)
def test_a_gradient_of_a_table_that_is_mostly_zeros_asks_for_sparse_rows(
    make_profile: MakeProfile, filled_ms: int, advice: str
) -> None:
    names = ["aten::embedding", "EmbeddingBackward0", "aten::embedding_dense_backward"]
    frames = [ROOT, THREAD, LINE, *map(_operator, [*names, "aten::zeros", "aten::mm"])]
    profile = make_profile(
        [-1, 0, 1, 2, 3, 4, 5, 2],
        frames,
        phases=[*[Phase.FORWARD] * 4, *[Phase.BACKWARD] * 3, Phase.FORWARD],
        host_time_ns={3: 10 * MS, 5: (100 - filled_ms) * MS, 6: filled_ms * MS, 7: 100 * MS},
        call_samples_ns={3: [11 * MS] * 10, 4: [10 * MS] * 10},
    )
    (finding,) = run_analyzers(profile, only=["forward_backward"])
    assert advice in finding.advice
    assert ("with zeros" in finding.title) == ("SGD" in advice)


def test_the_optimizer_s_pass_over_a_table_belongs_to_the_table(make_profile: MakeProfile) -> None:
    names = ["aten::embedding", "EmbeddingBackward0", "aten::embedding_dense_backward"]
    frames = [ROOT, THREAD, LINE, *map(_operator, [*names, "aten::zeros", "aten::sqrt"])]
    profile = make_profile(
        [-1, 0, 1, 2, 3, 4, 5, 2],
        frames,
        phases=[*[Phase.FORWARD] * 4, *[Phase.BACKWARD] * 3, Phase.OPTIMIZER],
        host_time_ns={3: MS, 5: 10 * MS, 6: 90 * MS, 7: 800 * MS},
        call_samples_ns={3: [2 * MS] * 10, 4: [10 * MS] * 10, 7: [80 * MS] * 10},
    )
    metric = next(each for each in METRICS if each.name == "peak_gradient_bytes")
    rows = MetricRows(metric, np.array([2, 6]), np.array([1, 1]), np.array([250, 750]))
    profile = dataclasses.replace(profile, metrics={**profile.metrics, metric.name: rows})
    (finding,) = run_analyzers(profile, only=["forward_backward"])
    # The backward without as long as the forward takes, and three quarters of the optimizer.
    assert finding.evidence["update_ns"] == 600 * MS
    assert finding.evidence["host_time_ns"] == 600 * MS + int(finding.evidence["backward_ns"])


def test_a_gather_is_judged_apart_from_the_layers_of_its_line(make_profile: MakeProfile) -> None:
    backward = ["EmbeddingBackward0", "aten::embedding_dense_backward", "aten::zeros"]
    names = ["aten::embedding", *backward, "aten::linear", "AddmmBackward0"]
    profile = make_profile(
        [-1, 0, 1, 2, 3, 4, 5, 2, 7],
        [ROOT, THREAD, LINE, *map(_operator, names)],
        phases=[
            *[Phase.FORWARD] * 4,
            *[Phase.BACKWARD] * 3,
            Phase.FORWARD,
            Phase.BACKWARD,
        ],
        host_time_ns={3: 10 * MS, 6: 200 * MS, 7: 200 * MS, 8: 300 * MS},
        call_samples_ns={3: [21 * MS] * 10, 4: [20 * MS] * 10, 8: [30 * MS] * 10},
    )
    (finding,) = run_analyzers(profile, only=["forward_backward"])
    assert finding.title.startswith("the gradient of 'aten::embedding'")


@pytest.mark.parametrize(("saved_ms", "severity"), [(40, Severity.INFO), (200, Severity.WARNING)])
def test_shares_of_a_short_run_refer_to_a_second(
    make_profile: MakeProfile, saved_ms: int, severity: Severity
) -> None:
    made = make_profile([-1, 0, 1], [ROOT, THREAD, LINE], run=RunInfo(wall_ns=300 * MS))
    rows = MetricRows(
        SAMPLED_CPU_TIME_NS,
        np.array([2], np.uint32),
        np.array([1], np.uint64),
        np.array([250 * MS], np.int64),
    )
    profile = dataclasses.replace(made, metrics={**made.metrics, SAMPLED_CPU_TIME_NS.name: rows})
    gain = Gain("host_time_ns", saved_ms * MS, 0.9, "it costs nothing")
    finding = Finding("made", Severity.HIGH, "x", (0,), gain=gain)
    analyzer = Analyzer("made", "what?", lambda _: [finding])
    (found,) = run_analyzers(profile, only=["made"], plugins=[analyzer])
    assert found.severity is severity


def _trained(make_profile: MakeProfile, gradients: int) -> Profile:
    """Return a profile of 100 steps that fill 200 gradients with zeros and compute `gradients`."""
    steps = 100
    frames = [
        ROOT,
        THREAD,
        LINE,
        Frame(FrameKind.SCOPE, "Optimizer.zero_grad#SGD.zero_grad"),
        _operator("aten::zero_"),
        Frame(FrameKind.SCOPE, "Optimizer.step#SGD.step"),
        _operator("aten::add_"),
        _operator("torch::autograd::AccumulateGrad"),
    ]
    return make_profile(
        [-1, 0, 1, 2, 3, 2, 5, 2],
        frames,
        phases=[Phase.NONE] * 5 + [Phase.OPTIMIZER] * 2 + [Phase.BACKWARD],
        host_time_ns={4: 100 * MS, 6: 900 * MS, 7: MS},
        call_samples_ns={
            4: [5000] * 200 * steps,
            5: [9 * MS] * steps,
            6: [45000] * 200 * steps,
            7: [100] * gradients * steps,
        },
        run=RunInfo(wall_ns=2000 * MS),
    )


@pytest.mark.parametrize(("gradients", "count"), [(200, 1), (2, 0)])
def test_updates_by_zeros_are_not_the_optimizer_s_fault(
    make_profile: MakeProfile, gradients: int, count: int
) -> None:
    found = run_analyzers(_trained(make_profile, gradients), only=["kernel_fusion"])
    assert len([each for each in found if "SGD calls" in each.title]) == count


def _looped(make_profile: MakeProfile, last: int) -> Profile:
    """Return a profile of five steps and a loop that was last seen working in step `last`."""
    made = make_profile(
        [-1, 0, 1, 2],
        [ROOT, THREAD, LINE, _operator("aten::select")],
        host_time_ns={3: 500 * MS},
        call_samples_ns={3: [5000] * 5000},
        run=RunInfo(wall_ns=2000 * MS, steps=5),
    )
    rows = MetricRows(
        SAMPLED_STEP,
        np.array([2], np.uint32),
        np.array([10], np.uint64),
        np.array([10 * last], np.int64),
        minimum=np.array([0], np.int64),
        maximum=np.array([last], np.int64),
    )
    return dataclasses.replace(made, metrics={**made.metrics, SAMPLED_STEP.name: rows})


@pytest.mark.parametrize(("last", "severity"), [(0, Severity.INFO), (5, Severity.HIGH)])
def test_a_loop_of_the_setup_does_not_grow_with_the_training(
    make_profile: MakeProfile, last: int, severity: Severity
) -> None:
    (finding,) = run_analyzers(_looped(make_profile, last), only=["kernel_fusion"])
    assert finding.severity is severity
    assert ("before the first step" in finding.title) == (last == 0)
