"""Parts that compute the same in each call are told beside others that do not, and only then."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from deepcontext.analyzers import run_analyzers
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import COMPARISON_WINDOW, REPEATED_INPUTS
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.run_info import RunInfo

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

MS = 1_000_000
ENCODER, DECODER = 3, 5


def _profile(
    make_profile: MakeProfile,
    *,
    repeated: tuple[int, int] = (20, 0),
    windows: tuple[tuple[int, int], tuple[int, int]] = ((1, 9), (1, 9)),
    decoder_ms: int = 500,
) -> Profile:
    """Return a profile of an encoder and a decoder in one loop, 20 calls of each compared."""
    made = make_profile(
        [-1, 0, 1, 2, 1, 4],
        [
            Frame(FrameKind.ROOT, ""),
            Frame(FrameKind.THREAD, "MainThread"),
            Frame(FrameKind.PYTHON, "sample", "/home/me/sample.py", 7),
            Frame(FrameKind.OPERATOR, "aten::linear"),
            Frame(FrameKind.PYTHON, "sample", "/home/me/sample.py", 8),
            Frame(FrameKind.OPERATOR, "aten::linear"),
        ],
        host_time_ns={ENCODER: 500 * MS, DECODER: decoder_ms * MS},
        run=RunInfo(cwd="/home/me", wall_ns=4000 * MS),
    )
    node, count = np.array([ENCODER, DECODER], np.uint32), np.array([20, 20], np.uint64)
    compared = MetricRows(
        COMPARISON_WINDOW,
        node,
        count,
        count.astype(np.int64) * 5,
        minimum=np.array([low for low, _ in windows]),
        maximum=np.array([high for _, high in windows]),
    )
    same = MetricRows(REPEATED_INPUTS, node, count, np.array(repeated))
    metrics = {**made.metrics, COMPARISON_WINDOW.name: compared, REPEATED_INPUTS.name: same}
    return dataclasses.replace(made, metrics=metrics)


def test_an_encoder_that_repeats_itself_beside_a_decoder_is_told(make_profile: MakeProfile) -> None:
    (finding,) = run_analyzers(_profile(make_profile), only=["model_calls"])
    assert finding.title == (
        "sample.py:7 (sample) computes the same again and again: 20 of 20 compared operators had the inputs "
        "of an earlier call, 50% of the time in operators"
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"repeated": (20, 20)},  # a benchmark of both
        {"repeated": (7, 0)},
        {"windows": ((1, 4), (5, 9))},  # training, then a benchmark
        {"windows": ((3, 3), (1, 9))},
        {"decoder_ms": 40},
    ],
    ids=["all repeat", "a third repeats", "one after the other", "one window", "nothing else"],
)
def test_other_repetitions_are_not_told(make_profile: MakeProfile, changed: dict[str, Any]) -> None:
    assert not run_analyzers(_profile(make_profile, **changed), only=["model_calls"])
