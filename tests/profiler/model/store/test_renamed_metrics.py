"""Metrics of older profiles have their current names."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from deepcontext.errors import QueryError
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.model.metric_table import MetricTable
from deepcontext.profiler.model.profile import Profile

if TYPE_CHECKING:
    from tests.conftest import MakeProfile


def test_a_metric_has_its_new_name(make_profile: MakeProfile) -> None:
    frames = [Frame(FrameKind.ROOT, ""), Frame(FrameKind.OPERATOR, "aten::mm")]
    made = make_profile([0, 0], frames, host_time_ns={1: 8})
    rows = made.metrics["host_time_ns"]
    descriptor = dataclasses.replace(rows.descriptor, name="cpu_time_ns")
    metrics = MetricTable({"cpu_time_ns": dataclasses.replace(rows, descriptor=descriptor)})
    old = dataclasses.replace(made, metrics=metrics)
    assert "host_time_ns" not in old.metrics
    profile = Profile.from_bytes(old.to_bytes())
    assert profile.query().name("aten::mm").total("host_time_ns") == 8
    assert Profile.from_bytes(profile.to_bytes()).metrics["host_time_ns"].total.tolist() == [8]
    with pytest.raises(QueryError, match="'cpu_time_ns' is called 'host_time_ns' now"):
        profile.query().total("cpu_time_ns")
