"""Rates of lines and of shapes, on the host and on a GPU."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest

from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.format.metric import GPU_TIME_NS
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.metric_table import MetricTable
from deepcontext.profiler.summaries.arithmetic import arithmetic
from deepcontext.ui.format import format_flops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.format.metric import MetricDescriptor
    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

FRAMES = [
    Frame(FrameKind.ROOT, ""),
    Frame(FrameKind.PYTHON, "slow", "/p.py", 3),
    Frame(FrameKind.OPERATOR, "aten::mm([2, 3], [3, 4])"),  # 48 operations
    Frame(FrameKind.KERNEL, "gemm"),
    Frame(FrameKind.OPERATOR, "MmBackward0([2, 4])"),
    Frame(FrameKind.OPERATOR, "aten::mm([2, 4], [4, 3])"),  # 48
    Frame(FrameKind.KERNEL, "gemm"),
    Frame(FrameKind.PYTHON, "fast", "/p.py", 9),
    Frame(FrameKind.OPERATOR, "aten::mm([20, 3], [3, 4])"),  # 480
    Frame(FrameKind.OPERATOR, "aten::_cudnn_rnn([2, 2, 2])"),
]
PARENTS = [0, 0, 1, 2, 2, 4, 5, 0, 7, 7]
PHASES = [
    *[Phase.NONE] * 2,
    *[Phase.FORWARD] * 2,
    *[Phase.BACKWARD] * 3,
    Phase.NONE,
    Phase.FORWARD,
    Phase.NONE,
]


def rows(metric: MetricDescriptor, values: dict[int, tuple[int, int]]) -> MetricRows:
    """Return rows of (count, total) by node."""
    count, total = zip(*values.values(), strict=True)
    return MetricRows(
        metric, np.array(list(values), np.uint32), np.array(count, np.uint64), np.array(total)
    )


@pytest.fixture
def profile(make_profile: MakeProfile) -> Profile:
    calls: dict[int, Sequence[int]] = {
        2: [100] * 10,
        4: [90] * 10,
        5: [80] * 10,
        8: [10] * 10,
        9: [10] * 7,
    }
    return make_profile(PARENTS, FRAMES, phases=PHASES, call_samples_ns=calls)


def test_a_line_has_its_backward_and_the_time_of_what_multiplies(profile: Profile) -> None:
    found = arithmetic(profile)
    assert found is not None
    by_line = {row.line: row.work for row in found.lines}
    assert list(by_line) == [9, 3]
    assert (by_line[3].flops, by_line[3].time_ns, by_line[3].calls) == (960, 1800, 20)
    assert by_line[9].flops_per_second == pytest.approx(48e9)
    assert found.total.flops == 5760
    assert not found.is_on_gpu


def test_shapes_are_apart_and_the_fastest_is_named(profile: Profile) -> None:
    found = arithmetic(profile, limit=1)
    assert found is not None
    assert [row.name for row in found.operators] == ["aten::mm([20, 3], [3, 4])"]
    assert (found.operator_count, found.line_count) == (3, 2)
    assert found.fastest_flops_per_second == pytest.approx(48e9)


def test_products_without_known_sizes_are_counted_as_such(profile: Profile) -> None:
    found = arithmetic(profile)
    assert found is not None
    assert found.unknown == {"aten::_cudnn_rnn": 7}


def test_on_a_gpu_the_time_is_that_of_the_kernels(profile: Profile) -> None:
    kernels = rows(GPU_TIME_NS, {3: (10, 300), 6: (10, 500)})
    table = MetricTable({**profile.stored_metrics(), GPU_TIME_NS.name: kernels})
    found = arithmetic(dataclasses.replace(profile, metrics=table))
    assert found is not None
    assert found.is_on_gpu
    assert {row.name: row.work.time_ns for row in found.operators} == {
        "aten::mm([20, 3], [3, 4])": 0,
        "aten::mm([2, 3], [3, 4])": 300,
        "aten::mm([2, 4], [4, 3])": 500,
    }


def test_without_shapes_nothing_is_said(make_profile: MakeProfile) -> None:
    frames = [Frame(FrameKind.ROOT, ""), Frame(FrameKind.OPERATOR, "aten::mm")]
    assert arithmetic(make_profile([0, 0], frames, call_samples_ns={1: [5]})) is None


@pytest.mark.parametrize(
    ("flops", "text"),
    [(0, "0"), (12, "12 FLOP"), (1.5e9, "1.50 GFLOP"), (2e19, "20.0 EFLOP")],
)
def test_flops_as_text(flops: float, text: str) -> None:
    assert format_flops(flops) == text
