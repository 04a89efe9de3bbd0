"""Linear layers on gathered rows, on made profiles with a backward."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

import numpy as np
import pytest

from deepcontext.analyzers import run_analyzers
from deepcontext.collectors.shared.memory_metrics import METRICS
from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.format.metric import CALL_DURATION_NS
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.run_info import RunInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.analyzers.finding import Finding
    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

MS: Final = 1_000_000
(ALLOCATED,) = (each for each in METRICS if each.name == "alloc_bytes")
# Of each operator: line, bytes of its result, bytes of its gradient, ms.
Operator = tuple[str, int, int, int, int]
GATHER: Final = ("aten::index", 8, 8000, 1000, 100)
LAYER: Final = ("aten::linear", 9, 4000, 8000, 300)


def _profile(
    make_profile: MakeProfile, operators: Sequence[Operator], backward_ms: int = 0
) -> Profile:
    """Return a profile of a function that calls operators ten times each, with their backward."""
    frames = [Frame(FrameKind.ROOT, ""), Frame(FrameKind.THREAD, "MainThread")]
    parents, phases = [-1, 0], [Phase.NONE, Phase.NONE]
    times, sizes = {}, {}
    for name, line, made, gradient, spent in operators:
        node = len(frames)
        frames += [
            Frame(FrameKind.PYTHON, "Net.forward", "/home/me/net.py", line),
            Frame(FrameKind.OPERATOR, name),
            Frame(FrameKind.OPERATOR, f"{name}_backward"),
        ]
        parents += [1, node, node + 1]
        phases += [Phase.FORWARD, Phase.FORWARD, Phase.BACKWARD]
        times[node + 1] = spent * MS
        times[node + 2] = backward_ms * MS
        sizes[node + 1], sizes[node + 2] = made, gradient
    run = RunInfo(cwd="/home/me", wall_ns=4000 * MS)
    made_profile = make_profile(parents, frames, phases=phases, host_time_ns=times, run=run)
    nodes = np.array(list(sizes), np.uint32)
    count = np.full(len(nodes), 10, np.uint64)
    size = np.array(list(sizes.values()))
    rows = [
        MetricRows(ALLOCATED, nodes, count, size * 10, minimum=size, maximum=size),
        MetricRows(CALL_DURATION_NS, nodes, count, size, minimum=size, maximum=size),
    ]
    metrics = {**made_profile.metrics, **{each.descriptor.name: each for each in rows}}
    return dataclasses.replace(made_profile, metrics=metrics)


def _found(make_profile: MakeProfile, *operators: Operator) -> list[Finding]:
    """Return what is said of layers on gathered rows."""
    profile = _profile(make_profile, operators)
    return [
        each
        for each in run_analyzers(profile, only=["cheaper_operator"])
        if "before the gather" in each.advice
    ]


def test_a_layer_on_rows_that_repeat_is_to_be_moved(make_profile: MakeProfile) -> None:
    (finding,) = _found(make_profile, GATHER, LAYER)
    assert finding.evidence["times"] == 8
    assert finding.gain is not None
    # Half of the gather's bytes remain.
    assert finding.gain.upper_bound == 350 * MS


def test_calls_whose_source_needs_no_gradient_count_too(make_profile: MakeProfile) -> None:
    first = ("aten::linear", 9, 4000, 0, 200)
    (finding,) = _found(make_profile, GATHER, LAYER, first)
    assert finding.evidence["host_time_ns"] == 500 * MS


@pytest.mark.parametrize(
    "operators",
    [
        # Few repeated rows; no gradient of the source; another input; the layer comes first.
        [("aten::index", 8, 8000, 4000, 100), LAYER],
        [("aten::index", 8, 8000, 0, 100), LAYER],
        [GATHER, ("aten::linear", 9, 4000, 2000, 300)],
        [GATHER, ("aten::linear", 7, 4000, 8000, 300)],
        # The source is the layer's result.
        [GATHER, ("aten::linear", 8, 1000, 8000, 300)],
        [GATHER, LAYER, ("aten::tanh", 10, 90, 90, 9000)],
        [GATHER, ("aten::mul", 8, 8000, 8000, 1), LAYER],
        [GATHER, ("aten::add", 8, 8000, 8000, 1), LAYER],
        [GATHER, ("aten::view", 8, 0, 0, 1), LAYER],
    ],
)
def test_other_layers_stay(make_profile: MakeProfile, operators: list[Operator]) -> None:
    assert _found(make_profile, *operators) == []


def test_differences_of_gathered_rows_are_gathers_of_differences(make_profile: MakeProfile) -> None:
    between = ("aten::sub", 8, 8000, 8000, 1)
    assert len(_found(make_profile, GATHER, GATHER, between, LAYER)) == 1


def test_the_gather_of_such_a_layer_has_no_finding_of_its_own(make_profile: MakeProfile) -> None:
    def judged(*operators: Operator) -> list[str]:
        profile = _profile(make_profile, operators, backward_ms=500)
        return [each.id for each in run_analyzers(profile, only=["forward_backward"])]

    assert judged(GATHER) == ["forward_backward"]
    assert judged(GATHER, LAYER) == []
