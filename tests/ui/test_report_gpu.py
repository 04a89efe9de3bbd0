"""What the report says about work on a GPU."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.ui.report import render_report, render_summary, report_to_dict
from tests.ui.conftest import KERNEL, gpu_profile

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "report-json.md"


def _report(profile: Profile, width: int = 100) -> list[str]:
    file = io.StringIO()
    render_report(profile, console=Console(file=file, width=width), full=True)
    return file.getvalue().splitlines()


@pytest.mark.parametrize("with_operator", [True, False])
def test_kernels_are_listed_whatever_launched_them(
    make_profile: Any, *, with_operator: bool
) -> None:
    lines = _report(gpu_profile(make_profile, with_operator=with_operator))
    assert "  GPU       24.0 ms in 8 kernels, copies and memsets" in lines
    row = next(line for line in lines if "softmax_forward" in line and "24.0 ms" in line)
    assert row.split()[:6] == ["24.0", "ms", "100", "%", "8", "3.00"]
    heading = "Source lines by GPU time" if with_operator else "Source lines of the program"
    title = lines.index(next(line for line in lines if line.startswith(heading)))
    assert any("train.py:7" in line and "24.0 ms" in line for line in lines[title:])


def test_gpu_work_without_operators_gives_no_advice_to_import_a_framework(
    make_profile: Any,
) -> None:
    text = "\n".join(_report(gpu_profile(make_profile, with_operator=False)))
    assert "the report shows the GPU's work" in text
    assert "imports PyTorch" not in text


def test_the_short_report_has_the_work_of_the_gpu(make_profile: Any) -> None:
    file = io.StringIO()
    profile = gpu_profile(make_profile, with_operator=False)
    render_summary(profile, console=Console(file=file, width=80), path=None)
    assert "on the GPU: 24.0 ms in 8 kernels, copies and memsets" in file.getvalue()


def test_a_kernel_name_is_shortened_where_it_is_least_informative(make_profile: Any) -> None:
    lines = _report(gpu_profile(make_profile, with_operator=True), width=72)
    start = lines.index(next(line for line in lines if line.startswith("Kernels")))
    assert any("at::native::softmax_forward" in line for line in lines[start : start + 4])


def test_phases_are_omitted_where_none_is_known(make_profile: Any) -> None:
    frames = [Frame(FrameKind.ROOT, ""), Frame(FrameKind.OPERATOR, "aten::mm")]
    profile = make_profile([0, 0], frames, host_time_ns={1: 7}, call_samples_ns={1: [7]})
    assert "Phases" not in _report(profile)


def test_json_has_the_same_figures_and_every_key_is_documented(make_profile: Any) -> None:
    profile = gpu_profile(make_profile, with_operator=True)
    gpu: Any = report_to_dict(profile, limit=5, metric="host_time_ns")["gpu"]
    assert (gpu["time_ns"], gpu["launches"]) == (24_000_000, 8)
    [row] = gpu["kernels"]["rows"]
    assert (row["name"], row["gpu_time_ns"], row["launches"]) == (KERNEL, 24_000_000, 8)
    keys = {f"gpu.{key}" for key in gpu} | {f"gpu.kernels.{key}" for key in gpu["kernels"]}
    keys |= {f"gpu.kernels.rows.{key}" for key in row}
    assert keys == set(re.findall(r"^\| `(gpu\.[\w.]+)` ", PAGE.read_text("utf-8"), re.MULTILINE))
