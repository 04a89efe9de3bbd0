"""What a loop can save of its wait for workers, if other programs use processors and if none does."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import worker_waits
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.profiler.summaries.loader_workers import LoaderTime

if TYPE_CHECKING:
    from tests.conftest import MakeProfile

ROOT = Frame(FrameKind.ROOT, "root")
LINE = Frame(FrameKind.PYTHON, "Sounds.__getitem__", "data.py", 20)
SECOND_NS = 1_000_000_000
# A loop that works for 2 s and waits for 8 s, for one worker that makes batches all the time.
BUSY = LoaderTime(
    pid=1,
    loops=(),
    worker_count=1,
    at_once=1,
    batch_count=100,
    making_ns=9 * SECOND_NS,
    wait_ns=8 * SECOND_NS,
    lines=((LINE, 9 * SECOND_NS),),
    running_ns=SECOND_NS,
)
IN_OPERATORS = dataclasses.replace(BUSY, in_operators=((LINE, 8 * SECOND_NS),))


def _told(make_profile: MakeProfile, times: LoaderTime, *, cores: int = 2) -> Finding:
    frames = [ROOT, Frame(FrameKind.SCOPE, "enumerate(DataLoader)"), Frame(FrameKind.OPERATOR, "x")]
    profile = make_profile(
        [-1, 0, 0],
        frames,
        host_time_ns={1: 8 * SECOND_NS, 2: 2 * SECOND_NS},
        run=RunInfo(pid=1, wall_ns=10 * SECOND_NS, cpu_count=cores),
    )
    evidence = {"wait_ns": 8 * SECOND_NS, "worker_count": times.at_once}
    finding = Finding("data_loading", Severity.HIGH, "waits", (1,), evidence, advice="other advice")
    return worker_waits.with_workers(profile, finding, times)


def test_python_for_each_sample_can_be_avoided(make_profile: MakeProfile) -> None:
    told = _told(make_profile, BUSY)
    assert told.severity is Severity.HIGH
    assert told.advice.startswith("make data.py:20 (Sounds.__getitem__) cheaper")
    assert told.gain is not None
    assert told.gain.upper_bound == told.evidence["saved_ns"] == 8 * SECOND_NS


def test_operators_in_workers_ask_for_more_workers(make_profile: MakeProfile) -> None:
    told = _told(make_profile, IN_OPERATORS)
    assert told.severity is Severity.HIGH
    assert told.advice.startswith("start more workers: they make batches all the time")
    # Two processors share 9 s of the worker and 2 s of the loop.
    assert told.evidence["saved_ns"] == pytest.approx(3.5 * SECOND_NS)
    many = _told(make_profile, IN_OPERATORS, cores=16)
    assert many.evidence["saved_ns"] == pytest.approx(7 * SECOND_NS)


def test_libraries_that_pass_over_a_batch_a_few_times_are_as_cheap_as_operators(
    make_profile: MakeProfile,
) -> None:
    """Drawing a number for each element; if it takes long, elements are made that no batch has."""
    in_libraries = dataclasses.replace(BUSY, in_libraries=((LINE, 8 * SECOND_NS),))
    few = _told(make_profile, dataclasses.replace(in_libraries, copying_ns=SECOND_NS))
    assert few.advice.startswith("start more workers: they make batches all the time")
    many = _told(make_profile, dataclasses.replace(in_libraries, copying_ns=SECOND_NS // 10))
    assert many.advice.startswith("make data.py:20 (Sounds.__getitem__) cheaper")


def test_without_idle_processors_a_slow_loader_is_no_warning(make_profile: MakeProfile) -> None:
    crowded = dataclasses.replace(IN_OPERATORS, ready_ns=9 * SECOND_NS)
    one_each = dataclasses.replace(
        IN_OPERATORS, worker_count=2, at_once=2, making_ns=10 * SECOND_NS, wait_ns=SECOND_NS
    )
    for times in (crowded, one_each):
        told = _told(make_profile, times)
        assert told.severity is Severity.INFO
        assert told.evidence["saved_ns"] == 0
        assert told.advice == "other advice"


def test_more_workers_do_not_help_a_loop_that_is_slower_than_they_are(
    make_profile: MakeProfile,
) -> None:
    asleep = dataclasses.replace(BUSY, waiting_ns=9 * SECOND_NS)
    told = _told(make_profile, asleep)
    assert told.severity is Severity.HIGH
    assert told.advice.startswith("start more workers, also more than cores")
    # The loop works for 9 s of the 10 s.
    told = _told(make_profile, dataclasses.replace(asleep, wait_ns=SECOND_NS))
    assert told.severity is Severity.INFO


def test_idle_workers_are_left_out_of_an_idle_machine_only(make_profile: MakeProfile) -> None:
    idle = dataclasses.replace(BUSY, making_ns=SECOND_NS // 2, lines=((LINE, SECOND_NS // 2),))
    told = _told(make_profile, idle)
    assert told.severity is Severity.HIGH
    assert told.advice.startswith("load without workers")
    assert told.evidence["saved_ns"] == 7.5 * SECOND_NS
    crowded = dataclasses.replace(idle, ready_ns=4 * SECOND_NS, loop_ready_ns=4 * SECOND_NS)
    assert _told(make_profile, crowded).severity is Severity.INFO
    # What the loop computes to take batches over is no wait for a processor.
    taking = dataclasses.replace(crowded, loop_running_ns=3 * SECOND_NS)
    told = _told(make_profile, taking)
    assert told.severity is Severity.HIGH
    assert told.evidence["saved_ns"] == 2.5 * SECOND_NS
