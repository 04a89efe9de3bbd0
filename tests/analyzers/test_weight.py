"""The severity and the order of findings follow from the share of the run that they save."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest

from deepcontext.analyzers import Analyzer, Finding, Gain, Severity, run_analyzers
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import SAMPLED_CPU_TIME_NS, SAMPLED_READY_TIME_NS
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.run_info import ALL_RANKS, RunInfo
from deepcontext.ui.finding_texts import gain_text

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

SECOND = 1_000_000_000
LIBRARY = "/usr/lib/python3.11/site-packages/torch/__init__.py"
FRAMES = [
    Frame(FrameKind.ROOT, ""),
    Frame(FrameKind.THREAD, "MainThread"),
    Frame(FrameKind.PYTHON, "<module>", "/home/me/train.py", 1),
    Frame(FrameKind.PYTHON, "<module>", LIBRARY, 1),
    Frame(FrameKind.OPERATOR, "aten::sort"),
]


@pytest.fixture
def profile(make_profile: MakeProfile) -> Profile:
    """100 s: 50 s of imports, 49 s of the script's own, 1 s in an operator."""
    made: Profile = make_profile(
        [0, 0, 1, 2, 2],
        FRAMES,
        host_time_ns={4: SECOND},
        run=RunInfo(wall_ns=100 * SECOND),
    )
    rows = MetricRows(
        SAMPLED_CPU_TIME_NS,
        np.array([2, 3], np.uint32),
        np.array([1, 1], np.uint64),
        np.array([49 * SECOND, 50 * SECOND], np.int64),
    )
    return dataclasses.replace(made, metrics={**made.metrics, SAMPLED_CPU_TIME_NS.name: rows})


def _found(profile: Profile, *gains: Gain) -> list[Finding]:
    findings = [Finding(gain.metric, Severity.HIGH, "x", (0,), gain=gain) for gain in gains]
    made = Analyzer("made", "what?", lambda _: findings)
    return list(run_analyzers(profile, only=["made"], plugins=[made]))


def _gain(metric: str, saved_ns: int, share: float) -> Gain:
    return Gain(metric, saved_ns, share, "it costs nothing")


def test_a_large_share_of_a_small_metric_has_low_severity(profile: Profile) -> None:
    (found,) = _found(profile, _gain("host_time_ns", SECOND * 9 // 10, 0.9))
    assert found.severity is Severity.INFO
    assert found.gain is not None
    assert found.gain.run_share == pytest.approx(0.009)
    assert gain_text(found) == "90.0 % of host time (0.9 % of the run)"


def test_severity_is_judged_without_imports(profile: Profile) -> None:
    (found,) = _found(profile, _gain("host_time_ns", 20 * SECOND, 0.9))
    assert found.severity is Severity.HIGH  # 20 of 50 s, although a fifth of the run


def test_the_finding_that_saves_most_of_the_run_comes_first(profile: Profile) -> None:
    small, large = _gain("host_time_ns", SECOND, 0.98), _gain("elapsed time", 40 * SECOND, 0.4)
    assert [each.id for each in _found(profile, small, large)] == ["elapsed time", "host_time_ns"]


def test_gains_of_memory_are_not_rescaled(profile: Profile) -> None:
    (found,) = _found(profile, _gain("peak_bytes", SECOND, 0.5))
    assert found.severity is Severity.HIGH
    assert found.gain is not None
    assert found.gain.run_share is None
    assert gain_text(found) == "50.0 % of peak memory"
    process = dataclasses.replace(
        profile, run=dataclasses.replace(profile.run, peak_rss_bytes=4 * SECOND)
    )
    (found,) = _found(process, _gain("peak_bytes", SECOND, 0.5))
    assert gain_text(found).endswith(" MiB, 25.0 % of the process's memory)")


def test_without_samples_the_severity_is_the_analyzers(profile: Profile) -> None:
    metrics = {k: v for k, v in profile.metrics.items() if not k.startswith("sampled")}
    bare = dataclasses.replace(profile, metrics=metrics)
    (found,) = _found(bare, _gain("host_time_ns", SECOND * 9 // 10, 0.9))
    assert found.severity is Severity.HIGH


def _of_work(make_profile: MakeProfile, working_ns: int, ranks: int = 0) -> Profile:
    """Return a run of 50 s, all but `working_ns` of it imports."""
    run = RunInfo(wall_ns=50 * SECOND, ranks=ranks, rank=ALL_RANKS if ranks else 0)
    made: Profile = make_profile(
        [0, 0, 1, 2, 2], FRAMES, host_time_ns={4: working_ns // 2}, run=run
    )
    rows = MetricRows(
        SAMPLED_CPU_TIME_NS,
        np.array([2, 3], np.uint32),
        np.array([1, 1], np.uint64),
        np.array([working_ns - working_ns // 2, 50 * SECOND - working_ns], np.int64),
    )
    return dataclasses.replace(made, metrics={**made.metrics, SAMPLED_CPU_TIME_NS.name: rows})


@pytest.mark.parametrize("metric", ["host_time_ns", "gpu_time_ns", "elapsed time", "peak_bytes"])
def test_a_program_that_did_almost_no_work_has_no_high_finding(
    make_profile: MakeProfile, metric: str
) -> None:
    gain = _gain(metric, SECOND * 9 // 10, 0.9)
    (found,) = _found(_of_work(make_profile, SECOND - 1), gain)
    assert found.severity is Severity.WARNING
    (found,) = _found(_of_work(make_profile, SECOND), gain)
    assert found.severity is Severity.HIGH


def test_work_beside_other_programs_is_not_more_work(make_profile: MakeProfile) -> None:
    profile = _of_work(make_profile, 3 * SECOND)
    gain = _gain("host_time_ns", SECOND * 9 // 10, 0.9)
    (found,) = _found(profile, gain)
    assert found.severity is Severity.HIGH
    # 3 of 4 parts of the time that it could run, the main thread had no processor.
    ready = MetricRows(
        SAMPLED_READY_TIME_NS,
        np.array([3], np.uint32),
        np.array([1], np.uint64),
        np.array([3 * int(profile.exclusive(SAMPLED_CPU_TIME_NS.name).sum())], np.int64),
    )
    metrics = {**profile.metrics, SAMPLED_READY_TIME_NS.name: ready}
    (found,) = _found(dataclasses.replace(profile, metrics=metrics), gain)
    assert found.severity is Severity.WARNING


def test_a_finding_without_a_gain_is_judged_by_the_work_too(make_profile: MakeProfile) -> None:
    made = Analyzer("made", "what?", lambda _: [Finding("made", Severity.HIGH, "x", (0,))])
    (found,) = run_analyzers(_of_work(make_profile, SECOND - 1), only=["made"], plugins=[made])
    assert found.severity is Severity.WARNING


def test_work_of_a_job_is_that_of_one_rank(make_profile: MakeProfile) -> None:
    gain = _gain("host_time_ns", 2 * SECOND, 0.9)
    (found,) = _found(_of_work(make_profile, 4 * SECOND - 1, ranks=4), gain)
    assert found.severity is Severity.WARNING
    (found,) = _found(_of_work(make_profile, 4 * SECOND, ranks=4), gain)
    assert found.severity is Severity.HIGH


def test_a_small_share_of_elapsed_time_has_low_severity(profile: Profile) -> None:
    (found,) = _found(profile, _gain("elapsed time", SECOND, 0.9))
    assert found.severity is Severity.INFO  # 1 of 50 s, as when a function is compiled five times


@pytest.mark.parametrize(("saved_ns", "count"), [(SECOND, 0), (5 * SECOND, 1)])
def test_a_location_with_almost_none_of_the_run_is_not_named(
    profile: Profile, saved_ns: int, count: int
) -> None:
    finding = Finding("place", Severity.HIGH, "x", (0,), gain=_gain("host_time_ns", saved_ns, 0.9))
    place = Analyzer("place", "where?", lambda _: [finding], names_place_only=True)
    assert len(run_analyzers(profile, only=["place"], plugins=[place])) == count
