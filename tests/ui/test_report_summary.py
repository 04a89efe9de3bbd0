"""The short report shows where time goes, in the user's or a library's loop, and the setup time."""

from __future__ import annotations

import dataclasses
import io
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import SAMPLED_CPU_TIME_NS
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.ui.report import render_report, render_summary

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

SECOND = 1_000_000_000
LIBRARY = "/usr/lib/python3.11/site-packages/torch/__init__.py"
LINE = Frame(FrameKind.PYTHON, "<module>", "/home/me/train.py", 3)
BASE = [Frame(FrameKind.ROOT, ""), Frame(FrameKind.THREAD, "MainThread")]


def _summary(profile: Profile) -> str:
    file = io.StringIO()
    render_summary(profile, console=Console(file=file, width=100), path=None)
    return file.getvalue()


def test_operators_of_several_threads_are_no_share_of_the_elapsed_time(
    make_profile: MakeProfile,
) -> None:
    """They take longer than the run; a share of 136 % would say nothing."""
    profile = make_profile(
        [0, 0, 1, 2],
        [*BASE, LINE, Frame(FrameKind.OPERATOR, "aten::x")],
        host_time_ns={3: 8 * SECOND},
        call_samples_ns={3: [4 * SECOND, 4 * SECOND]},
        run=RunInfo(wall_ns=6 * SECOND),
    )
    file = io.StringIO()
    render_report(profile, console=Console(file=file, width=100), full=True)
    assert "8.00 s in them, on several threads" in " ".join(file.getvalue().split())


def test_importing_and_compiling_are_said_first(make_profile: MakeProfile) -> None:
    imported = Frame(FrameKind.PYTHON, "<module>", LIBRARY, 1)
    compiling = Frame(FrameKind.MARKER, "torch.compile: compiling")
    profile = make_profile(
        [0, 0, 1, 2, 2, 2],
        [*BASE, LINE, imported, compiling, Frame(FrameKind.OPERATOR, "aten::x")],
        host_time_ns={5: SECOND},
        call_samples_ns={5: [SECOND]},
        run=RunInfo(wall_ns=10 * SECOND),
    )
    rows = MetricRows(
        SAMPLED_CPU_TIME_NS,
        np.array([3, 4], np.uint32),
        np.array([1, 1], np.uint64),
        np.array([3 * SECOND, 6 * SECOND], np.int64),
    )
    profile = dataclasses.replace(
        profile, metrics={**profile.metrics, SAMPLED_CPU_TIME_NS.name: rows}
    )
    _, second, *_ = _summary(profile).splitlines()
    assert second == "> compiling takes 60.0 % of the elapsed time, most at /home/me/train.py:3"
    file = io.StringIO()
    render_report(profile, console=Console(file=file, width=120), full=True)
    assert "set-up 90.0 % (imports 30.0 %, compiling 60.0 %)" in file.getvalue()
