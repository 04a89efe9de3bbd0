"""Elapsed time is derived from operators and samples, counts each once, and is in no file."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from deepcontext.errors import QueryError
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import SAMPLED_CPU_TIME_NS, SAMPLED_WAIT_TIME_NS
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.profile import Profile

if TYPE_CHECKING:
    from pathlib import Path

    from deepcontext.profiler.format.metric import MetricDescriptor

FRAMES = [
    Frame(FrameKind.ROOT, ""),
    Frame(FrameKind.THREAD, "MainThread"),
    Frame(FrameKind.PYTHON, "train", "/home/me/train.py", 3),
    Frame(FrameKind.SCOPE, "warm-up"),
    Frame(FrameKind.OPERATOR, "aten::mm"),
    Frame(FrameKind.SCOPE, "inside"),
]
PARENTS = [0, 0, 1, 2, 3, 4]


def _rows(metric: MetricDescriptor, values: dict[int, int]) -> MetricRows:
    return MetricRows(
        metric,
        np.array(list(values), np.uint32),
        np.full(len(values), 2, np.uint64),
        np.array(list(values.values()), np.int64),
    )


@pytest.fixture
def plain(make_profile: Any) -> Profile:
    profile: Profile = make_profile(PARENTS, FRAMES, host_time_ns={3: 50, 4: 1000, 5: 7})
    return profile


@pytest.fixture
def sampled(plain: Profile) -> Profile:
    more = {
        SAMPLED_CPU_TIME_NS.name: _rows(SAMPLED_CPU_TIME_NS, {2: 20, 3: 45}),
        SAMPLED_WAIT_TIME_NS.name: _rows(SAMPLED_WAIT_TIME_NS, {2: 300}),
    }
    return dataclasses.replace(plain, metrics={**plain.metrics, **more})


def test_operators_and_samples_count_once(sampled: Profile) -> None:
    # The scope's exclusive 50 ns were sampled as 45; time below an operator is the operator's.
    assert sampled.exclusive("elapsed_time_ns").tolist() == [0, 0, 320, 45, 1000, 7]
    assert int(sampled.inclusive("elapsed_time_ns")[0]) == 1372
    assert sampled.counts("elapsed_time_ns").tolist()[2:5] == [4, 3, 1]
    assert sampled.query().kind("operator").total("elapsed_time_ns") == 1000


def test_a_profile_without_samples_has_no_elapsed_time(plain: Profile) -> None:
    assert "elapsed_time_ns" not in plain.metrics
    with pytest.raises(QueryError, match="no metric 'elapsed_time_ns'"):
        plain.exclusive("elapsed_time_ns")


def test_elapsed_time_is_derived_from_a_loaded_file(sampled: Profile, tmp_path: Path) -> None:
    assert "elapsed_time_ns" in sampled.metrics
    assert "elapsed_time_ns" not in sampled.stored_metrics()
    assert "elapsed_time_ns" not in {each["name"] for each in sampled.to_dict()["metrics"]}
    path = tmp_path / "x.dcprof"
    sampled.with_section("notes", b"{}").save(path)
    again = Profile.load(path)
    assert list(again.stored_metrics()) == list(sampled.stored_metrics())
    np.testing.assert_array_equal(
        again.exclusive("elapsed_time_ns"), sampled.exclusive("elapsed_time_ns")
    )
