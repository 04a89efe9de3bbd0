"""Expected gains are parts of the bound, for analyzers whose fixes were measured."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest

from deepcontext.analyzers import ALL, Finding, Gain, Severity
from deepcontext.analyzers.finding import Confidence
from deepcontext.analyzers.judgement import MEASURED, MeasuredFixes, doubted, judged
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import SAMPLED_READY_TIME_NS, SAMPLED_WAIT_TIME_NS
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.run_info import RunInfo

if TYPE_CHECKING:
    from tests.conftest import MakeProfile

FINDING = Finding(
    "host_work", Severity.WARNING, "parsing", (0,), gain=Gain("elapsed time", 1000, 0.5, "x")
)


def test_a_measured_analyzer_has_a_range_within_the_bound() -> None:
    found = judged(FINDING)
    low, high, _ = MEASURED["host_work"]
    assert found.gain is not None
    assert (found.gain.low, found.gain.high) == (int(1000 * low), int(1000 * high))


@pytest.mark.parametrize(("pairs", "expected"), [(1, Confidence.MEDIUM), (3, Confidence.HIGH)])
def test_confidence_follows_from_the_number_of_fixes(
    monkeypatch: pytest.MonkeyPatch, pairs: int, expected: Confidence
) -> None:
    table = {"host_work": MeasuredFixes(0.5, 1.0, pairs)}
    monkeypatch.setattr("deepcontext.analyzers.judgement.MEASURED", table)
    assert judged(FINDING).confidence is expected
    question = dataclasses.replace(FINDING, severity=Severity.INFO)
    assert judged(question).confidence is Confidence.LOW


def test_an_analyzer_without_measured_fixes_has_no_range() -> None:
    finding = dataclasses.replace(FINDING, id="stall_reasons")
    assert judged(finding) == finding


def test_ranges_are_of_known_analyzers_and_within_the_bound() -> None:
    assert set(MEASURED) <= {analyzer.id for analyzer in ALL}
    assert all(0 < each.low < each.high <= 1 and each.pairs > 0 for each in MEASURED.values())


@pytest.mark.parametrize(("ready_ns", "doubts"), [(40, 1), (5, 0)])
def test_a_busy_machine_makes_waits_doubtful(
    make_profile: MakeProfile, ready_ns: int, doubts: int
) -> None:
    main = Frame(FrameKind.THREAD, "MainThread")
    profile = make_profile([0, 0], [Frame(FrameKind.ROOT, ""), main], run=RunInfo(wall_ns=100))
    node, count, total = np.array([1], np.uint32), np.ones(1, np.uint64), np.array([ready_ns])
    waits = {
        each.name: MetricRows(each, node, count, total)
        for each in (SAMPLED_WAIT_TIME_NS, SAMPLED_READY_TIME_NS)
    }
    metrics = {**profile.stored_metrics(), **waits}
    profile = dataclasses.replace(profile, metrics=metrics)
    of_waits = dataclasses.replace(FINDING, id="slow_steps", misleads="it is meant")
    found = doubted(of_waits, profile)
    assert found.misleads.count("was busy") == doubts
    assert found.misleads.startswith("it is meant")
    assert doubted(FINDING, profile) == FINDING
