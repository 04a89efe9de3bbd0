"""Metrics that a profile lacks count as 0, and only metrics that add up are summed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deepcontext.errors import QueryError
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.model import metric_values
from deepcontext.profiler.model.metric_values import summed, total

FRAMES = [
    Frame(FrameKind.ROOT, ""),
    Frame(FrameKind.PYTHON, "f", "/home/me/train.py", 3),
    Frame(FrameKind.PYTHON, "g", "/usr/lib/python3.11/site-packages/torch/x.py", 3),
    Frame(FrameKind.OPERATOR, "aten::mm"),
]


@pytest.fixture
def profile(make_profile: Any) -> Any:
    return make_profile([0, 0, 1, 2], FRAMES, host_time_ns={1: 2, 3: 5})


@pytest.mark.parametrize("values", ["exclusive_or_zeros", "inclusive_or_zeros", "counts_or_zeros"])
def test_an_unknown_metric_is_zero_everywhere(profile: Any, values: str) -> None:
    found = getattr(metric_values, values)
    assert found(profile, "gpu_time_ns").tolist() == [0, 0, 0, 0]
    known = getattr(profile, values.removesuffix("_or_zeros"))
    assert found(profile, "host_time_ns").tolist() == known("host_time_ns").tolist()
    assert total(profile, "gpu_time_ns") == 0
    assert total(profile, "host_time_ns") == 7


def test_a_metric_that_the_user_names_must_exist(profile: Any) -> None:
    with pytest.raises(QueryError, match="no metric 'gpu_time_ns'"):
        summed(profile, "gpu_time_ns")


def test_user_code_lines_and_kinds_are_columns(profile: Any) -> None:
    tree, frames = profile.tree, profile.frames
    assert frames.is_user_code()[tree.frame].tolist() == [False, True, False, False]
    lines = frames.source_line()[tree.frame]
    assert lines[1] != lines[2]  # lines of two files
    operators = profile.is_kind(FrameKind.OPERATOR)
    assert operators.tolist() == [False, False, False, True]
    library = profile.is_kind(FrameKind.PYTHON) & ~frames.is_user_code()[tree.frame]
    assert tree.at_or_below(library).tolist() == [False, False, True, True]
    assert not tree.at_or_below(np.zeros(4, np.bool_)).any()
