"""What a visit to a machine with a GPU wrote becomes tables of docs/benchmarks.md."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]


def test_the_tables_of_a_visit_name_machine_and_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("tests/gpu", "benchmarks"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    results: Any = importlib.import_module("results")
    visit: Any = importlib.import_module("gpu_visit")
    for name in ("results", "gpu_visit", "paired"):
        sys.modules.pop(name)

    assert visit.tables(tmp_path) == []
    written = results.Results(tmp_path / "h200", "overhead")
    written.content["device_and_driver"] = "NVIDIA H200, 580.65"
    written.expect(["test_a", "test_b"])
    written.row("gpt2: deepcontext", "1.02 x plain | more", "for information")
    written.end_test("test_a", "passed", 1.0, "")
    (table,) = visit.tables(tmp_path)
    text = table.markdown()
    assert f"GPU: overhead on NVIDIA H200, 580.65, {written.content['date']}" in text
    assert "| gpt2: deepcontext | 1.02 x plain / more | for information |" in text
    assert "1 passed, 1 not reached" in text
    assert "Not reached: test_b." in text


def test_a_page_says_what_a_visit_may_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only where each test of a part passed, and the part ended."""
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "gpu"))
    visit: Any = importlib.import_module("visit")
    for name in ("visit", "stacks"):
        sys.modules.pop(name)
    for part, outcomes in (
        ("visit", ("passed", "skipped")),
        ("stalls", ("passed", "passed")),
        ("overhead", ("passed",)),
    ):
        tests = {str(number): {"outcome": outcome} for number, outcome in enumerate(outcomes)}
        text = json.dumps({"tests": tests})
        (tmp_path / f"summary-{part}.json").write_text(text, encoding="utf-8")
    ended = {"visit": "9 s", "stalls": "9 s", "overhead": "ended after 9 s"}
    monkeypatch.setenv("DEEPCONTEXT_FAKES", str(tmp_path))
    assert "nvidia.md" not in visit.page(tmp_path, ended)
    monkeypatch.delenv("DEEPCONTEXT_FAKES")
    page = visit.page(tmp_path, ended)
    rows = [line for line in page.splitlines() if line.startswith("| ")][1:]
    changes = {row.split(" | ")[0][2:]: row.split(" | ")[3] for row in rows}
    assert changes.pop("stalls").startswith("docs/reference/nvidia.md")
    assert set(changes.values()) == {"nothing |"}
    assert "| 1 passed, 1 skipped |" in page


@pytest.mark.long
def test_tests_that_run_beside_each_other_are_joined(tmp_path: Path, fakes: Path) -> None:
    """One that hangs is ended, with its programs, and told."""
    for name in (
        "side_by_side.py",
        "conftest.py",
        "harness.py",
        "results.py",
        "stacks.py",
        "pytest.ini",
    ):
        shutil.copy(ROOT / "tests" / "gpu" / name, tmp_path)
    (tmp_path / "test_three.py").write_text(
        "import subprocess, sys, pytest\n"
        "pytestmark = pytest.mark.gpu\n"
        "def test_good(bench):\n    bench.row('a check', '1', '2')\n"
        "def test_bad():\n    assert 1 == 2\n"
        "def test_without_end():\n    subprocess.run(['sleep', '600'])\n",
        encoding="utf-8",
    )
    environment = {
        **os.environ,
        "OUT": str(tmp_path / "out"),
        "DEEPCONTEXT_LIBCUDA": str(fakes / "libcuda.so.1"),
        "DEEPCONTEXT_GPU_SET_UP_S": "0",
    }
    done = subprocess.run(
        [sys.executable, "side_by_side.py", "three", "3", "10", "test_three.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1, done.stderr
    summary = json.loads((tmp_path / "out" / "summary-three.json").read_text(encoding="utf-8"))
    outcomes = {name: each["outcome"] for name, each in summary["tests"].items()}
    assert outcomes == {"test_good": "passed", "test_bad": "failed", "test_without_end": "hung"}
    assert summary["outcomes"] == {"failed": 1, "hung": 1, "passed": 1}
    (stacks,) = (tmp_path / "out" / "tests").glob("*without_end*/stacks.txt")
    assert "sleep 600" in stacks.read_text(encoding="utf-8")
    table = (tmp_path / "out" / "table-three.md").read_text(encoding="utf-8")
    assert "| a check | 1 | 2 |" in table
    assert not list((tmp_path / "out").glob("summary-all*"))
