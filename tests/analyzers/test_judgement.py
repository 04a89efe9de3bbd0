"""Expected gains are parts of the bound, for analyzers whose fixes were measured."""

from __future__ import annotations

import dataclasses

import pytest

from deepcontext.analyzers import ALL, Finding, Gain, Severity
from deepcontext.analyzers.finding import Confidence
from deepcontext.analyzers.judgement import MEASURED, MeasuredFixes, judged

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
