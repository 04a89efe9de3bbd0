"""Work between operators, on a made profile: whose time it is."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from deepcontext.analyzers import run_analyzers
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import (
    GC_TIME_NS,
    PROGRAM_LAUNCH_COUNT,
    SAMPLED_CPU_TIME_NS,
    SAMPLED_STEP,
)
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.run_info import RunInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

MS = 1_000_000
STEPS = 100


PICK = (
    Frame(FrameKind.ROOT, ""),
    Frame(FrameKind.THREAD, "MainThread"),
    Frame(FrameKind.PYTHON, "pick", "/home/me/train.py", 7),
)
LAMBDA = Frame(FrameKind.PYTHON, "pick.<locals>.<lambda>", "/home/me/train.py", 8)


def _sampled(
    make_profile: MakeProfile,
    cpu_ms: dict[int, int],
    below: Sequence[Frame] = (LAMBDA,),
    **more: Any,
) -> Profile:
    """Return a profile of 100 steps, with samples of `pick` and of frames below, one below the other."""
    frames = [*PICK, *below]
    made = make_profile(
        [-1, *range(len(frames) - 1)],
        frames,
        **more,
        run=RunInfo(cwd="/home/me", wall_ns=4000 * MS, steps=STEPS),
    )
    nodes = np.array(list(cpu_ms), np.uint32)
    count = np.full(len(nodes), STEPS, np.uint64)
    time = MetricRows(SAMPLED_CPU_TIME_NS, nodes, count, np.array(list(cpu_ms.values())) * MS)
    steps = MetricRows(
        SAMPLED_STEP,
        nodes,
        count,
        np.full(len(nodes), STEPS * STEPS // 2),
        minimum=np.zeros(len(nodes), np.int64),
        maximum=np.full(len(nodes), STEPS),
    )
    metrics = {**made.metrics, time.descriptor.name: time, steps.descriptor.name: steps}
    return dataclasses.replace(made, metrics=metrics)


def test_a_lambda_is_a_part_of_the_function_around_it(make_profile: MakeProfile) -> None:
    profile = _sampled(make_profile, {1: 1000, 2: 1800, 3: 1200})
    (finding,) = run_analyzers(profile, only=["host_work"])
    assert finding.title == "Python at train.py:7 (pick) takes 75% of the time, between operators"


@pytest.mark.parametrize(
    ("operators_ms", "title", "advice"),
    [
        (10, "work of 'gym' at train.py:7 (pick) takes 50%", "as an environment does"),
        (
            9000,
            "work of 'gym' around the operators that it runs, at train.py:7 (pick)",
            "larger batch",
        ),
    ],
)
def test_a_package_that_runs_the_operators_prepares_nothing(
    make_profile: MakeProfile, operators_ms: int, title: str, advice: str
) -> None:
    called = Frame(FrameKind.PYTHON, "step", "/lib/python3.11/site-packages/gym/core.py", 3)
    below = (called, Frame(FrameKind.OPERATOR, "aten::mm"))
    host = {4: operators_ms * MS}
    profile = _sampled(make_profile, {1: 2000, 3: 2000}, below, host_time_ns=host)
    (finding,) = run_analyzers(profile, only=["host_work"])
    assert finding.title.startswith(title)
    assert advice in finding.advice


def test_collections_count_where_they_are_no_finding_of_their_own(
    make_profile: MakeProfile,
) -> None:
    """Nor do they have one where the work of a function makes the objects that are collected."""
    sampled = _sampled(make_profile, {1: 1000, 2: 3000})
    collector = (
        "Python's garbage collector takes 35% of the time in 30 collections, "
        "100% of it at train.py:7 (pick)"
    )
    python = "Python at train.py:7 (pick) takes {}% of the time, between operators"
    for collected_ms, titles in (
        (300, [python.format(75)]),
        (600, [python.format(75)]),
        (1400, [collector, python.format(40)]),
    ):
        node, count = np.array([2], np.uint32), np.array([30], np.uint64)
        rows = MetricRows(GC_TIME_NS, node, count, np.array([collected_ms * MS]))
        metrics = {**sampled.metrics, GC_TIME_NS.name: rows}
        profile = dataclasses.replace(sampled, metrics=metrics)
        found = run_analyzers(profile, only=["host_work"])
        assert {each.title for each in found} == set(titles)


def test_a_collection_that_the_program_asks_for_is_one_finding(make_profile: MakeProfile) -> None:
    """Its pause is at the line, and its samples are in the native function that the line calls."""
    collect = Frame(FrameKind.NATIVE, "gc_collect_main", "/usr/bin/python3.11")
    sampled = _sampled(make_profile, {1: 1000, 3: 3000}, [collect])
    rows = MetricRows(
        GC_TIME_NS, np.array([2], np.uint32), np.array([30], np.uint64), np.array([2900 * MS])
    )
    profile = dataclasses.replace(sampled, metrics={**sampled.metrics, GC_TIME_NS.name: rows})
    (finding,) = run_analyzers(profile, only=["host_work"])
    assert "garbage collector" in finding.title


def test_collections_of_the_setup_are_no_finding(make_profile: MakeProfile) -> None:
    """They do not grow with the training."""
    sampled = _sampled(make_profile, {1: 1000, 2: 3000})
    rows = MetricRows(
        GC_TIME_NS, np.array([2], np.uint32), np.array([30], np.uint64), np.array([1800 * MS])
    )
    steps = sampled.metrics[SAMPLED_STEP.name]
    setup = dataclasses.replace(
        steps, total=np.zeros_like(steps.total), maximum=np.zeros_like(steps.total)
    )
    for clock, is_told in ((steps, True), (setup, False)):
        metrics = {**sampled.metrics, GC_TIME_NS.name: rows, SAMPLED_STEP.name: clock}
        profile = dataclasses.replace(sampled, metrics=metrics)
        titles = [each.title for each in run_analyzers(profile, only=["host_work"])]
        assert any("garbage collector" in title for title in titles) is is_told


def test_python_around_launches_of_jax_is_not_about_tensors(make_profile: MakeProfile) -> None:
    """Flax flattens a module at each call of a jitted function: no batch, and no tensor of lists."""
    sampled = _sampled(make_profile, {1: 1000, 2: 3000})
    rows = MetricRows(
        PROGRAM_LAUNCH_COUNT,
        np.array([2], np.uint32),
        np.array([STEPS], np.uint64),
        np.array([STEPS]),
    )
    metrics = {**sampled.metrics, rows.descriptor.name: rows}
    profile = dataclasses.replace(sampled, metrics=metrics)
    (finding,) = run_analyzers(profile, only=["host_work"])
    assert finding.title.startswith("Python around a call of JAX at train.py:7 (pick)")
    assert "nnx.split" in finding.advice
