"""A sampler that loads samples in the process of the loop, which workers are meant to do."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from deepcontext.analyzers import run_analyzers
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import SAMPLED_CPU_TIME_NS
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.metric_table import MetricTable
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.profiler.model.trust import TrustReport

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

LOADER = "/lib/site-packages/torch/utils/data/dataloader.py"
SECOND_NS = 1_000_000_000


def _loop(make_profile: MakeProfile, iterator: str, sampler_s: float) -> Profile:
    """Return a loop of 4 s whose sampler loads samples in `data.py:38`."""
    frames = [
        Frame(FrameKind.ROOT, "root"),
        Frame(FrameKind.THREAD, "MainThread"),
        Frame(FrameKind.PYTHON, "train", "train.py", 50),
        Frame(FrameKind.SCOPE, f"enumerate(DataLoader)#{iterator}.__next__"),
        Frame(FrameKind.PYTHON, "_BaseDataLoaderIter._next_index", LOADER, 715),
        Frame(FrameKind.PYTHON, "ByLength.__iter__", "data.py", 38),
        Frame(FrameKind.PYTHON, f"{iterator}.__init__", LOADER, 1),
        Frame(FrameKind.OPERATOR, "aten::random_"),
        Frame(FrameKind.OPERATOR, "aten::mm"),
    ]
    made = make_profile(
        [-1, 0, 1, 2, 3, 4, 2, 6, 2],
        frames,
        host_time_ns={3: int(sampler_s * SECOND_NS), 7: 1000, 8: SECOND_NS},
        call_samples_ns={3: [SECOND_NS // 1000] * 10, 7: [1000], 8: [SECOND_NS // 10] * 10},
        run=RunInfo(wall_ns=4 * SECOND_NS, cpu_count=2, cpu_user_ns=4 * SECOND_NS),
        trust=TrustReport(counters={"forked_children": 1}),
    )
    values = {2: int((4 - sampler_s) * SECOND_NS), 5: int(sampler_s * SECOND_NS)}
    rows = MetricRows(
        SAMPLED_CPU_TIME_NS,
        node=np.array(list(values), np.uint32),
        count=np.full(2, 100, np.uint64),
        total=np.array(list(values.values()), np.int64),
    )
    metrics = MetricTable({**made.metrics, SAMPLED_CPU_TIME_NS.name: rows})
    return dataclasses.replace(made, metrics=metrics)


def test_a_sampler_that_loads_is_told_with_its_line(make_profile: MakeProfile) -> None:
    loop = _loop(make_profile, "_MultiProcessingDataLoaderIter", 1.5)
    (finding,) = run_analyzers(loop, only=["data_loading"])
    assert "100% of it at data.py:38 (ByLength.__iter__)" in finding.title
    assert finding.advice.startswith("make data.py:38 (ByLength.__iter__) cheaper")
    assert finding.gain is not None
    assert finding.gain.upper_bound == SECOND_NS * 3 // 2


def test_a_quick_sampler_is_no_finding(make_profile: MakeProfile) -> None:
    loop = _loop(make_profile, "_MultiProcessingDataLoaderIter", 0.1)
    assert run_analyzers(loop, only=["data_loading"]) == ()
