"""Gradients that no optimizer uses, on made profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deepcontext.analyzers import run_analyzers
from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.model.run_info import RunInfo

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

MS = 1_000_000
RUN = RunInfo(cwd="/home/me", wall_ns=5000 * MS)


def _python(name: str, file: str, line: int) -> Frame:
    return Frame(FrameKind.PYTHON, name, file, line)


def _operator(name: str) -> Frame:
    return Frame(FrameKind.OPERATOR, name)


MAIN = [
    Frame(FrameKind.ROOT, ""),
    Frame(FrameKind.THREAD, "MainThread"),
    _python("train", "/home/me/train.py", 12),
]
BACKWARD = [
    _python("train", "/home/me/train.py", 13),
    _python("backward", "/venv/site-packages/torch/autograd/__init__.py", 300),
    _python("_make_grads", "/venv/site-packages/torch/autograd/__init__.py", 100),
    _operator("aten::ones_like"),
]


def _gradients(
    make_profile: MakeProfile, added: int, *, passes: int = 100, zeros: int = 0
) -> Profile:
    """Return a profile of 100 steps in which each backward stores 10 gradients."""
    modules = [
        Frame(FrameKind.MODULE, "Model"),
        _python("Model.forward", "/home/me/train.py", 5),
        Frame(FrameKind.MODULE, "Encoder 'encoder'"),
        _operator("AddmmBackward0"),
        Frame(FrameKind.MODULE, "Linear 'head'"),
        _operator("AddmmBackward0"),
    ]
    step = [
        _operator("torch::autograd::AccumulateGrad"),
        _operator("aten::add_"),
        Frame(FrameKind.SCOPE, "Optimizer.step#SGD.step"),
        _operator("aten::zero_"),
    ]
    calls = {6: passes, 8: passes, 12: passes, 13: 10 * passes, 14: added, 15: 100, 16: zeros}
    none, back = Phase.NONE, Phase.BACKWARD
    return make_profile(
        [-1, 0, 1, 2, 3, 4, 5, 4, 7, 1, 9, 10, 11, 10, 13, 2, 2],
        [*MAIN, *modules, *BACKWARD, *step],
        phases=[*[none] * 6, back, none, back, none, *[back] * 5, none, none],
        host_time_ns={6: 900 * MS, 8: 100 * MS, 16: 1000 * MS},
        call_samples_ns={node: [1] * count for node, count in calls.items() if count},
        run=RUN,
    )


def test_gradients_that_only_grow_are_told_with_their_module(make_profile: MakeProfile) -> None:
    (finding,) = run_analyzers(_gradients(make_profile, 8 * 99), only=["settings"])
    assert finding.title == (
        "80% of the gradients that the backward at train.py:13 (train) computes (most of it for Encoder "
        "'encoder', called at train.py:5 (Model.forward)) are of parameters that no optimizer updates: up to "
        "40% of the time in operators"
    )
    assert finding.evidence["gradients_count"] == 10
    assert finding.gain is not None
    assert finding.gain.upper_bound == 800 * MS


def test_few_unused_gradients_name_no_module(make_profile: MakeProfile) -> None:
    (finding,) = run_analyzers(_gradients(make_profile, 3 * 99), only=["settings"])
    assert "Encoder" not in finding.title
    assert finding.gain is not None
    assert finding.gain.upper_bound == 300 * MS


@pytest.mark.parametrize(
    ("added", "passes", "zeros"),
    [
        pytest.param(0, 100, 0, id="all are cleared"),
        pytest.param(10 * 99, 100, 0, id="none is cleared"),
        pytest.param(8 * 300, 400, 0, id="accumulation of four batches"),
        pytest.param(8 * 99, 100, 800, id="filled with zeros"),
        pytest.param(20, 100, 0, id="hardly any"),
    ],
)
def test_gradients_that_are_meant_to_be_added_are_not_told(
    make_profile: MakeProfile, added: int, passes: int, zeros: int
) -> None:
    profile = _gradients(make_profile, added, passes=passes, zeros=zeros)
    assert run_analyzers(profile, only=["settings"]) == ()
