"""The JSON report: every key is documented, every number is that of the summary."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.peaks import DevicePeaks, encode_section
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.profiler.summaries.operators import by_operator
from deepcontext.ui.report import job_to_dict, report_to_dict
from tests.kept_steps import lane, step, with_steps

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "report-json.md"
# Below these, keys are names from the program: options, packages, counters.
FREE_FORM = {"options", "frameworks", "counters", "details"}


def _keys(value: object, path: str = "") -> set[str]:
    if isinstance(value, dict):
        found = set()
        for key, item in value.items():
            name = f"{path}.{key}".lstrip(".")
            found |= {name} | (set() if key in FREE_FORM else _keys(item, name))
        return found
    if isinstance(value, list):
        return set().union(*(_keys(item, path) for item in value), set())
    return set()


@pytest.fixture
def report(training_folder: Path) -> dict[str, Any]:
    profile = with_steps(
        Profile.load(training_folder / "troubled.dcprof"), step(1, 0, 9, [lane([(1, 2, 5)])])
    )
    content = report_to_dict(profile, limit=3, metric="host_time_ns")
    content |= job_to_dict([profile])  # of a run directory only
    return content


def test_every_key_is_documented_and_every_documented_key_exists(report: dict[str, Any]) -> None:
    documented = set(
        re.findall(r"^\| `([\w.]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    )
    # Keys of a program with JAX: tests/integration/jax/test_report.py; with memory:
    # tests/integration/torch/test_memory.py; with counters: tests/collectors/cpu/test_counters.py;
    # of DataLoader workers and of waiting processes: tests/integration/processes/test_roles.py;
    # of several ranks: tests/ui/test_cli_merge.py; with a GPU: tests/ui/test_report_gpu.py;
    # of native functions: tests/collectors/cpu/test_native_callees.py;
    # of NCCL: tests/collectors/gpu/test_nccl.py;
    # of evaluations and late compilations: tests/profiler/summaries/test_occasions.py;
    # of packages below one line, of torch.compile, of shapes: the next tests.
    elsewhere = (
        "loaders.",
        "waits.",
        "compiled_kernels.",
        "jax.",
        "memory.",
        "counter_use.",
        "ranks.",
        "gpu.",
        "account.gpu.",
        "account.lines.rows.callees.",
        "basis.occasions.",
        "nccl.",
        "below.",
        "arithmetic.",
        "efficiency.",
    )
    documented = {key for key in documented if not key.startswith(elsewhere)}
    # A table is documented once: rows of operators, modules and scopes have the same keys.
    same = {"modules": "operators", "scopes": "operators"}
    found = {
        re.sub(r"^(\w+)\.", lambda match: f"{same.get(match[1], match[1])}.", key)
        for key in _keys(report)
    }
    found = {re.sub(r"^paths\.exclusive\.", "paths.inclusive.", key) for key in found}
    found = {re.sub(r"^account\.(imports|other_threads)\.", "account.lines.", key) for key in found}
    # Likewise the numbers of a group and of a distribution.
    found = {re.sub(r"^lines\.rows\.phases\..*", "lines.rows.phases", key) for key in found}
    found = {re.sub(r"^operators\.rows\.phases\..*", "operators.rows.phases", key) for key in found}
    assert found == documented


def test_kernels_of_torch_compile_have_documented_keys(make_profile: Any) -> None:
    launch = {
        "file": "/tmp/torchinductor_me/cab.py",
        "line": 3,
        "operators": ["aten.sin"],
        "source": [["/home/me/net.py", 7, "forward"]],
        "is_complete": True,
    }
    section = json.dumps({"version": 1, "kernels": {"cpp_fused_sin_0": [launch]}}).encode()
    frames = [Frame(FrameKind.ROOT, ""), Frame(FrameKind.OPERATOR, "graph_0_cpp_fused_sin_0")]
    profile = make_profile([0, 0], frames, host_time_ns={1: 5})
    profile = profile.with_section("torch_compile", section)
    kernels = report_to_dict(profile, limit=1)["compiled_kernels"]
    found = {f"compiled_kernels.{key}" for key in _keys(kernels)}
    page = PAGE.read_text(encoding="utf-8")
    assert found == set(re.findall(r"^\| `(compiled_kernels\.[\w.]+)` \|", page, re.MULTILINE))


def test_packages_below_one_line_have_documented_keys(training_folder: Path) -> None:
    profile = Profile.load(training_folder / "left.dcprof")
    below = report_to_dict(profile, limit=1)["below"]
    found = {f"below.{key}" for key in _keys(below)}
    page = PAGE.read_text(encoding="utf-8")
    assert found == set(re.findall(r"^\| `(below\.[\w.]+)` \|", page, re.MULTILINE))
    assert isinstance(below, dict)
    assert (below["line"], below["line_count"]) == (13, 3)
    assert [row["name"] for row in below["packages"]] == ["transformers", "accelerate"]


def test_operations_of_a_profile_with_shapes_have_documented_keys(make_profile: Any) -> None:
    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.PYTHON, "f", "/p.py", 3),
        Frame(FrameKind.OPERATOR, "aten::mm(f32[2, 3], f32[3, 4])"),
        Frame(FrameKind.OPERATOR, "aten::cat()"),
    ]
    run = RunInfo(cpu_model="A CPU", cpu_count=1)
    calls = {2: [5], 3: [5]}
    profile = make_profile([0, 0, 1, 1], frames, call_samples_ns=calls, run=run)
    own = DevicePeaks("A CPU", 1, 1, {"f32": 1e9}, 1e9)
    profile = profile.with_section("peaks", encode_section([own], 1))
    report = report_to_dict(profile, limit=1)
    page = PAGE.read_text(encoding="utf-8")
    for part in ("arithmetic", "efficiency"):
        found = {f"{part}.{key}" for key in _keys(report[part])}
        found = {key.replace("flops_per_second.f32", "flops_per_second") for key in found}
        assert found == set(re.findall(rf"^\| `({part}\.[\w.]+)` \|", page, re.MULTILINE))


def test_the_report_survives_json(report: dict[str, Any]) -> None:
    assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_numbers_are_those_of_the_summary(training_folder: Path, report: dict[str, Any]) -> None:
    profile = Profile.load(training_folder / "train.dcprof")
    table = by_operator(profile)
    assert report["operators"]["row_count"] == table.row_count
    for row, group in zip(report["operators"]["rows"], table.rows, strict=False):
        assert row["name"] == group.name
        assert row["inclusive"] == group.inclusive
        assert row["exclusive_share"] == group.exclusive / table.total
        assert row["call_ns"]["sd"] == group.calls.sd if group.calls else row["call_ns"] is None
    assert sum(row["value"] for row in report["phases"]) == report["total"] == table.total


def test_empty_profile_is_reported_too(make_profile: Any) -> None:
    profile = make_profile([0], [Frame(FrameKind.ROOT, "")])
    report = report_to_dict(profile, limit=3, metric="host_time_ns")
    assert report["total"] == 0
    assert report["steps"] is None
    assert report["paths"] == {"inclusive": [], "exclusive": []}
    json.dumps(report, allow_nan=False)
