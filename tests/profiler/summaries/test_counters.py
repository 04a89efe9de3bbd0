from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from deepcontext.profiler.format.counter_names import CYCLES, INSTRUCTIONS
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.metric_table import MetricTable
from deepcontext.profiler.summaries import counters as counter_summary

if TYPE_CHECKING:
    from deepcontext.profiler.format.metric import MetricDescriptor
    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile


def rows(metric: MetricDescriptor, values: dict[int, int]) -> MetricRows:
    return MetricRows(
        metric,
        node=np.array(list(values), np.uint32),
        count=np.ones(len(values), np.uint64),
        total=np.array(list(values.values()), np.int64),
    )


def profile_with(make_profile: MakeProfile, *metrics: MetricRows) -> Profile:
    """root > main:3 > {aten::mm, load:7}; main:9."""
    frames = [
        Frame(FrameKind.ROOT, "root", "", 0),
        Frame(FrameKind.THREAD, "MainThread", "", 0),
        Frame(FrameKind.PYTHON, "main", "program.py", 3),
        Frame(FrameKind.OPERATOR, "aten::mm", "", 0),
        Frame(FrameKind.PYTHON, "load", "program.py", 7),
        Frame(FrameKind.PYTHON, "main", "program.py", 9),
    ]
    made = make_profile([-1, 0, 1, 2, 2, 1], frames)
    table = MetricTable({**made.metrics, **{each.descriptor.name: each for each in metrics}})
    return dataclasses.replace(made, metrics=table)


def test_a_line_excludes_deeper_lines_and_includes_its_operators(
    make_profile: MakeProfile,
) -> None:
    profile = profile_with(
        make_profile,
        rows(CYCLES, {2: 100, 3: 300, 4: 1000}),
        rows(INSTRUCTIONS, {2: 100, 3: 900, 4: 500, 5: 7}),
    )
    lines, count = counter_summary.by_line(profile)
    assert count == 3
    assert [line.line for line in lines] == [7, 3, 9]
    assert [dict(line.counts) for line in lines] == [
        {"cycle_count": 1000, "instruction_count": 500},
        {"cycle_count": 400, "instruction_count": 1000},
        {"cycle_count": 0, "instruction_count": 7},
    ]
    assert [line.instructions_per_cycle for line in lines] == [0.5, 2.5, None]
    assert len(counter_summary.by_line(profile, 1)[0]) == 1


def test_without_both_counters_there_is_no_ratio(make_profile: MakeProfile) -> None:
    profile = profile_with(make_profile, rows(CYCLES, {2: 100}))
    (line,), _ = counter_summary.by_line(profile)
    assert line.instructions_per_cycle is None


def test_a_profile_without_counters_has_no_lines(make_profile: MakeProfile) -> None:
    profile = profile_with(make_profile)
    assert counter_summary.counted(profile) == ()
    assert counter_summary.by_line(profile) == ((), 0)
