"""Moves in loops that no program avoids: those of packages, such as samplers, and tiny ones."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest

from deepcontext.analyzers import jax_fusion
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import BYTES_MOVED, DEVICE_TIME_NS
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.metric_table import MetricTable

if TYPE_CHECKING:
    from tests.conftest import MakeProfile


@pytest.mark.parametrize(
    ("file", "is_of_package"),
    [
        ("/opt/lib/python3.11/site-packages/numpyro/util.py", True),
        ("/opt/lib/python3.11/site-packages/jax/_src/lax/loops.py", False),
        ("/home/me/model.py", False),
    ],
)
def test_a_loop_belongs_to_the_innermost_code_that_is_no_framework(
    make_profile: MakeProfile, file: str, *, is_of_package: bool
) -> None:
    profile = make_profile(
        [0, 0, 1, 2],
        [
            Frame(FrameKind.ROOT, ""),
            Frame(FrameKind.PYTHON, "main", "/home/me/train.py", 3),
            Frame(FrameKind.PYTHON, "while_loop", file, 9),
            Frame(FrameKind.HLO, "copy.1"),
        ],
    )
    assert bool(jax_fusion._of_packages(profile)[3]) is is_of_package


def test_a_loop_passes_small_values_on_as_fast_as_it_runs_any_operation(
    make_profile: MakeProfile,
) -> None:
    frames = [Frame(FrameKind.ROOT, ""), *(Frame(FrameKind.HLO, f"copy.{n}") for n in (1, 2))]
    profile = make_profile([-1, 0, 0], frames)
    rows = {
        metric.name: MetricRows(
            metric,
            node=np.array([1, 2], np.uint32),
            count=np.array([1000, 1000], np.uint64),
            total=np.array(totals, np.int64),
        )
        for metric, totals in (
            (DEVICE_TIME_NS, [650_000, 650_000_000]),
            (BYTES_MOVED, [1024 * 1000, 8_000_000 * 1000]),
        )
    }
    profile = dataclasses.replace(profile, metrics=MetricTable(rows))
    assert jax_fusion._are_tiny(profile).tolist() == [False, True, False]
