"""Each analyzer fires on a real program that has its problem, and not on one that has not."""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deepcontext.analyzers import run_analyzers
from deepcontext.profiler.frame import FrameKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext.analyzers import Finding
    from deepcontext.profiler.profile import Profile

    Case = Callable[[str], Profile]
    Record = Callable[[Path, str, list[str]], str]

# Case, analyzer, and a word of the advice.
CASES = [
    ("hotspot", "hotspot", "once"),
    ("fused_optimizer", "kernel_fusion", "fused=True"),
    ("attention", "kernel_fusion", "scaled_dot_product_attention"),
    ("label_smoothing", "kernel_fusion", "torch.compile"),
    ("embedding", "forward_backward", "index_select"),
    ("loader", "data_loading", "num_workers"),
    ("synchronisation", "synchronisation", "tensor"),
    ("layout", "copies", "channels_last"),
    ("cast", "copies", "convert once"),
    ("recompilation", "recompilation", "TORCH_LOGS"),
    ("graph_break", "recompilation", "fullgraph"),
    ("variance", "variance", "--shapes"),
    # The published case studies.
    ("recommendation", "forward_backward", "index_select"),
    ("graph", "forward_backward", "index_select"),
    ("rms_norm", "copies", "rms_norm"),
    ("eager", "kernel_fusion", "torch.compile"),
    ("gpu_layout", "copies", "channels_last"),
    ("gpu_warp", "launch_configuration", "multiple of 64"),
    # On a simulated GPU.
    ("gpu_starvation", "device_starvation", "out of the step"),
    ("gpu_precision", "precision", "TF32"),
    ("gpu_launch", "launch_configuration", "more blocks"),
    ("gpu_fusion", "kernel_fusion", "CUDA graph"),
    ("gpu_copies", "copies", "pin_memory"),
    ("gpu_synchronisation", "synchronisation", "on the device"),
    # JAX
    ("jax_recompute", "jax_fusion", "dots_saveable"),
    ("jax_retrace", "recompilation", "pad"),
]
IDS = [f"{name}-{analyzer}" for name, analyzer, _ in CASES]


@pytest.mark.parametrize(("name", "analyzer", "advice"), CASES, ids=IDS)
def test_fires_on_the_problem_at_its_line(
    case: Case, name: str, analyzer: str, advice: str
) -> None:
    profile = case(f"{name}_problem")
    if analyzer in {"variance", "forward_backward"} and _waited_for_cores(profile):
        pytest.skip("other programs had the cores, and with them ratios of elapsed times")
    findings = run_analyzers(profile, only=[analyzer])
    assert any(advice in finding.advice for finding in findings)
    lines = {line for finding in findings for line in _lines(profile, finding)}
    assert any("# the" in line and "problem" in line for line in lines), lines


@pytest.mark.parametrize(("name", "analyzer", "_"), CASES, ids=IDS)
def test_silent_on_the_healthy_program(case: Case, name: str, analyzer: str, _: str) -> None:
    assert run_analyzers(case(f"{name}_healthy"), only=[analyzer]) == ()


def test_memory_that_is_kept_is_found_at_its_line(case: Case) -> None:
    profile = case("memory_problem")
    if "peak_bytes" not in profile.metrics:
        pytest.skip("no collector of memory ran")
    findings = run_analyzers(profile, only=["memory"])
    assert any("# the problem" in line for each in findings for line in _lines(profile, each))
    assert run_analyzers(case("memory_healthy"), only=["memory"]) == ()


def test_findings_name_the_number_of_multiprocessors(case: Case) -> None:
    (finding,) = run_analyzers(case("gpu_launch_problem"), only=["launch_configuration"])
    assert finding.evidence["multiprocessors"] == 132
    assert finding.gain is not None
    assert finding.gain.upper_bound_share == pytest.approx(2 / 3 * (1 - 8 / 132), rel=0.01)


def test_changed_argument_of_a_jax_function_is_named(case: Case) -> None:
    (finding,) = run_analyzers(case("jax_retrace_problem"), only=["recompilation"])
    assert "f32[" in str(finding.evidence["changes"])


def test_every_break_of_a_graph_is_named(case: Case) -> None:
    findings = run_analyzers(case("graph_break_problem"), only=["recompilation"])
    assert all("resume" not in finding.title for finding in findings)


def test_place_is_left_out_where_the_reason_is_known(case: Case) -> None:
    found = run_analyzers(case("cast_problem"))
    assert "copies" in {finding.id for finding in found}
    assert "hotspot" not in {finding.id for finding in found if "aten::copy_" in finding.title}


def test_more_workers_than_cores_are_named(case: Case) -> None:
    profile = case("workers_problem")
    titles = [finding.title for finding in run_analyzers(profile, only=["data_loading"])]
    workers = 2 * profile.run.cpu_count + 1
    assert any(f"{workers} loader workers share" in title for title in titles)


@pytest.mark.gains
@pytest.mark.parametrize(
    ("name", "analyzer"),
    [
        ("fused_optimizer", "kernel_fusion"),
        ("embedding", "forward_backward"),
        ("recommendation", "forward_backward"),
        ("eager", "kernel_fusion"),
        ("loader", "data_loading"),
    ],
)
def test_the_fix_gains_and_no_more_than_the_bound(
    case: Case, record: Record, tmp_path: Path, name: str, analyzer: str
) -> None:
    output = record(tmp_path, "time", [f"{name}_problem", f"{name}_healthy"])
    rows = [line.split() for line in output.splitlines() if line.startswith("seconds")]
    problem, healthy = (float(row[2]) for row in rows)
    findings = run_analyzers(case(f"{name}_problem"), only=[analyzer])
    bound = sum(finding.gain.upper_bound_share for finding in findings if finding.gain)
    if name != "loader":  # its healthy program has a larger model
        assert healthy < problem
    # A tenth for the noise of two short runs; shares of a profile of a busy machine are rough.
    noise = 0.25 if _waited_for_cores(case(f"{name}_problem")) else 0.1
    assert (problem - healthy) / problem <= bound + noise


def _waited_for_cores(profile: Profile) -> bool:
    used = profile.run.cpu_user_ns + profile.run.cpu_system_ns
    return int(profile.exclusive("cpu_time_ns").sum()) > 1.05 * used


def _lines(profile: Profile, finding: Finding) -> list[str]:
    """Return the texts of the cases' own lines on the paths of a finding."""
    frames = [frame for node in finding.nodes for frame in profile.path(node)]
    return [
        linecache.getline(frame.file, frame.line)
        for frame in frames
        if frame.kind is FrameKind.PYTHON and Path(frame.file).parent.name == "cases"
    ]
