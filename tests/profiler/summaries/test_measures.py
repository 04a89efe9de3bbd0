"""Every view starts with the same metric: the first one that is informative for this program."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import SAMPLED_CPU_TIME_NS, Aggregation, MetricDescriptor
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.summaries.measures import default_metric, summed_metrics

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

GPU_TIME_NS = MetricDescriptor("gpu_time_ns", "ns", Aggregation.SUM, "")
ALLOC_BYTES = MetricDescriptor("alloc_bytes", "bytes", Aggregation.SUM, "")
BASE = [
    Frame(FrameKind.ROOT, ""),
    Frame(FrameKind.THREAD, "MainThread"),
    Frame(FrameKind.PYTHON, "<module>", "/home/me/train.py", 3),
]


def _profile(
    make: MakeProfile, kind: FrameKind, host_ns: int, *others: MetricDescriptor
) -> Profile:
    """Return a program with one frame below its line, which has 5 of each other metric."""
    frames = [*BASE, Frame(kind, "below")]
    profile = make([0, 0, 1, 2], frames, host_time_ns={3: host_ns} if host_ns else None)
    node, one = np.array([3], np.uint32), np.array([1], np.uint64)
    rows = {each.name: MetricRows(each, node, one, np.array([5], np.int64)) for each in others}
    return dataclasses.replace(profile, metrics={**profile.metrics, **rows})


@pytest.mark.parametrize(
    ("kind", "host_ns", "others", "first"),
    [
        (FrameKind.OPERATOR, 7, (GPU_TIME_NS, SAMPLED_CPU_TIME_NS), "host_time_ns"),
        (FrameKind.KERNEL, 0, (GPU_TIME_NS, SAMPLED_CPU_TIME_NS), "gpu_time_ns"),
        (FrameKind.PYTHON, 0, (SAMPLED_CPU_TIME_NS,), "elapsed_time_ns"),
        # In a program without operators, scopes cover only a part of the time.
        (FrameKind.SCOPE, 7, (SAMPLED_CPU_TIME_NS,), "elapsed_time_ns"),
        (FrameKind.SCOPE, 7, (), "host_time_ns"),
        (FrameKind.PYTHON, 0, (ALLOC_BYTES,), "alloc_bytes"),
        (FrameKind.PYTHON, 0, (), "host_time_ns"),
    ],
)
def test_the_first_metric_is_an_informative_one(
    make_profile: MakeProfile,
    kind: FrameKind,
    host_ns: int,
    others: tuple[MetricDescriptor, ...],
    first: str,
) -> None:
    profile = _profile(make_profile, kind, host_ns, *others)
    assert default_metric(profile) == first
    assert summed_metrics(profile)[0].name == first


def test_two_profiles_are_compared_by_a_metric_that_both_have(make_profile: MakeProfile) -> None:
    trained = _profile(make_profile, FrameKind.OPERATOR, 7, SAMPLED_CPU_TIME_NS)
    plain = _profile(make_profile, FrameKind.PYTHON, 0, SAMPLED_CPU_TIME_NS)
    unsampled = _profile(make_profile, FrameKind.SCOPE, 7)
    assert default_metric(plain, plain) == "elapsed_time_ns"
    assert default_metric(plain, trained) == default_metric(trained, plain) == "host_time_ns"
    assert default_metric(plain, unsampled) == "host_time_ns"
