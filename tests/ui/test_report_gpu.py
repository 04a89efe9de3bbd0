"""What the report says of work on a GPU."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from deepcontext.profiler.frame import Frame, FrameKind
from deepcontext.ui.report import render_report, render_summary
from tests.ui.conftest import gpu_profile

if TYPE_CHECKING:
    from deepcontext.profiler.profile import Profile


def _report(profile: Profile, width: int = 100) -> list[str]:
    file = io.StringIO()
    render_report(profile, console=Console(file=file, width=width))
    return file.getvalue().splitlines()


@pytest.mark.parametrize("with_operator", [True, False])
def test_kernels_are_listed_whatever_launched_them(
    make_profile: Any, *, with_operator: bool
) -> None:
    lines = _report(gpu_profile(make_profile, with_operator=with_operator))
    assert "  GPU       24.0 ms in 8 kernels, copies and memsets" in lines
    row = next(line for line in lines if "softmax_forward" in line and "24.0 ms" in line)
    assert row.split()[:6] == ["24.0", "ms", "100", "%", "8", "3.00"]
    title = lines.index(next(line for line in lines if line.startswith("Source lines by GPU time")))
    assert any("train.py:7" in line and "24.0 ms" in line for line in lines[title:])


def test_without_operators_no_advice_to_import_a_framework(make_profile: Any) -> None:
    text = "\n".join(_report(gpu_profile(make_profile, with_operator=False)))
    assert "what the GPU did is shown" in text
    assert "imports PyTorch" not in text


def test_the_short_report_says_what_the_gpu_did(make_profile: Any) -> None:
    file = io.StringIO()
    profile = gpu_profile(make_profile, with_operator=False)
    render_summary(profile, console=Console(file=file, width=80), path=None)
    assert "on the GPU: 24.0 ms in 8 kernels, copies and memsets" in file.getvalue()


def test_a_kernel_s_name_is_cut_where_it_says_least(make_profile: Any) -> None:
    lines = _report(gpu_profile(make_profile, with_operator=True), width=72)
    start = lines.index(next(line for line in lines if line.startswith("Kernels")))
    assert any("at::native::softmax_forward" in line for line in lines[start : start + 4])


def test_phases_are_left_out_where_none_is_known(make_profile: Any) -> None:
    frames = [Frame(FrameKind.ROOT, ""), Frame(FrameKind.OPERATOR, "aten::mm")]
    profile = make_profile([0, 0], frames, cpu_time_ns={1: 7}, call_samples_ns={1: [7]})
    assert "Phases" not in _report(profile)
