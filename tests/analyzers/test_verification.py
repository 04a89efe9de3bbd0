"""A changed program is judged by the sum of what the findings that are gone promised."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest

from deepcontext.analyzers import Finding, Gain, Severity
from deepcontext.analyzers.verification import ELAPSED, Verdict, verify
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import SAMPLED_READY_TIME_NS, SAMPLED_WAIT_TIME_NS
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.run_info import RunInfo

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

SECOND = 1_000_000_000
FRAMES = [
    Frame(FrameKind.ROOT, ""),
    Frame(FrameKind.THREAD, "MainThread"),
    Frame(FrameKind.PYTHON, "step", "/home/me/train.py", 12),
    Frame(FrameKind.OPERATOR, "aten::sort"),
]


def profile(
    make_profile: MakeProfile, seconds: float, *, line: int = 12, steps: int = 0
) -> Profile:
    frames = [*FRAMES[:2], Frame(FrameKind.PYTHON, "step", "/home/me/train.py", line), FRAMES[3]]
    run = RunInfo(wall_ns=int(seconds * SECOND), steps=steps)
    made: Profile = make_profile([0, 0, 1, 2], frames, run=run)
    return made


def finding(low: int | None, high: int | None, metric: str = "host_time_ns") -> Finding:
    gain = Gain(metric, 5 * SECOND, 0.5, "it costs nothing", low=low, high=high)
    return Finding("hotspot", Severity.HIGH, "sorting", (3,), gain=gain)


@pytest.mark.parametrize(
    ("after_s", "verdict"),
    [(7.0, Verdict.INSIDE), (9.5, Verdict.BELOW), (2.0, Verdict.ABOVE), (8.4, Verdict.INSIDE)],
)
def test_what_was_saved_is_compared_with_the_range(
    make_profile: MakeProfile, after_s: float, verdict: Verdict
) -> None:
    promised = finding(2 * SECOND, 4 * SECOND)
    found = verify((profile(make_profile, 10.0), [promised]), (profile(make_profile, after_s), []))
    (saving,) = found.savings
    assert (saving.metric, saving.per, saving.verdict) == (ELAPSED, "run", verdict)
    assert (saving.low, saving.high) == (0.2, 0.4)
    assert found.gone == (promised,)
    assert found.holds == (verdict is not Verdict.BELOW)


def test_a_finding_stays_when_its_line_moves(make_profile: MakeProfile) -> None:
    promised = finding(2 * SECOND, 4 * SECOND)
    found = verify(
        (profile(make_profile, 10.0), [promised]),
        (profile(make_profile, 10.0, line=40), [promised]),
    )
    assert (found.gone, found.remaining, found.fresh) == ((), (promised,), ())
    assert not found.holds


def test_steps_are_compared_where_both_have_them(make_profile: MakeProfile) -> None:
    promised = finding(4 * SECOND, 6 * SECOND)
    found = verify(
        (profile(make_profile, 10.0, steps=10), [promised]),
        (profile(make_profile, 10.0, steps=20), []),
    )
    (saving,) = found.savings
    assert saving.per == "step"
    assert saving.share == pytest.approx(0.5)
    assert saving.verdict is Verdict.INSIDE


def test_a_finding_without_a_measured_range_has_no_verdict(make_profile: MakeProfile) -> None:
    found = verify(
        (profile(make_profile, 10.0), [finding(None, None)]), (profile(make_profile, 5.0), [])
    )
    assert [each.verdict for each in found.savings] == [Verdict.UNKNOWN]


def test_what_was_not_saved_on_a_busy_machine_is_uncertain(make_profile: MakeProfile) -> None:
    promised = finding(2 * SECOND, 4 * SECOND)
    after = profile(make_profile, 9.5)
    node, count = np.array([1], np.uint32), np.ones(1, np.uint64)
    waits = {
        each.name: MetricRows(each, node, count, np.array([seconds * SECOND]))
        for each, seconds in ((SAMPLED_WAIT_TIME_NS, 9), (SAMPLED_READY_TIME_NS, 3))
    }
    after = dataclasses.replace(after, metrics={**after.stored_metrics(), **waits})
    found = verify((profile(make_profile, 10.0), [promised]), (after, []))
    assert [each.verdict for each in found.savings] == [Verdict.UNCERTAIN]
    assert found.holds
