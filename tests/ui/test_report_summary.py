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
    from collections.abc import Sequence

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


def _trained(make: MakeProfile, other_line_ns: int) -> Profile:
    """Two linear layers and a dropout below one line, and an operator of another line."""
    modules = ["Linear 'a'", "Linear 'b'", "Dropout 'c'"]
    frames, parents, times = [*BASE, LINE], [0, 0, 1], {}
    for number, name in enumerate(modules, 1):
        frames += [Frame(FrameKind.MODULE, name), Frame(FrameKind.OPERATOR, "aten::x")]
        parents += [2, len(frames) - 2]
        times[len(frames) - 1] = number * SECOND
    frames += [dataclasses.replace(LINE, line=9), Frame(FrameKind.OPERATOR, "aten::y")]
    parents += [1, len(frames) - 2]
    times[len(frames) - 1] = other_line_ns
    samples: dict[int, Sequence[int]] = {node: [value] for node, value in times.items()}
    return make(parents, frames, host_time_ns=times, call_samples_ns=samples)


def test_modules_are_shown_where_one_line_has_nearly_everything(make_profile: MakeProfile) -> None:
    text = " ".join(_summary(_trained(make_profile, SECOND // 10)).split())
    assert "modules by class" in text
    assert "3.00 s 49.2 % Linear (2)" in text
    assert "3.00 s 49.2 % Dropout" in text


def test_modules_are_omitted_where_several_lines_share_the_time(make_profile: MakeProfile) -> None:
    assert "modules by class" not in _summary(_trained(make_profile, 6 * SECOND))


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
    text = " ".join(_summary(profile).split())
    assert "6.00 s, 8.00 s in 2 operator calls on several threads" in text
    file = io.StringIO()
    render_report(profile, console=Console(file=file, width=100))
    assert "8.00 s in them, on several threads" in " ".join(file.getvalue().split())


def test_importing_and_compiling_are_in_the_first_line(make_profile: MakeProfile) -> None:
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
    first, *_ = _summary(profile).splitlines()
    assert first.endswith("in 1 operator calls, 60.0 % compiling, 30.0 % importing")
    file = io.StringIO()
    render_report(profile, console=Console(file=file, width=120), full=True)
    assert "importing 3.00 s (30.0 %), compiling 6.00 s (60.0 %)" in file.getvalue()
