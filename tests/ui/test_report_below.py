"""The report of a real program that leaves its work to an installed package."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PACKAGE = """\
import deepcontext


def decode(n):
    return sum(i * i for i in range(n))


def run(n):
    for _ in range(4):
        decode(n)


def record_itself(path, n):
    deepcontext.start(path, cpu_rate=1000)
    run(n)
    deepcontext.stop()
"""
CALLER = """\
import enginekit

enginekit.run({n})
"""
SPAWNER = """\
import multiprocessing

import enginekit

if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(
        target=enginekit.record_itself, args=("child.dcprof", {n})
    )
    child.start()
    child.join()
"""
WORK = 1_500_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    site = tmp_path / "lib" / "site-packages"
    (site / "enginekit").mkdir(parents=True)
    (site / "enginekit" / "__init__.py").write_text(PACKAGE, encoding="utf-8")
    return tmp_path


def _run(folder: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder / "lib" / "site-packages")}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**environment, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def _assert_told(text: str, where: str) -> None:
    lines = text.splitlines()
    (told,) = (number for number, line in enumerate(lines) if line.startswith(f"{where}, "))
    assert "enginekit " in lines[told]
    assert "enginekit/__init__.py:5" in lines[told + 2]
    assert "return sum(i * i for i in range(n))" in lines[told + 2]


@pytest.mark.long
def test_the_report_continues_in_the_package_that_the_line_calls(folder: Path) -> None:
    (folder / "main.py").write_text(CALLER.format(n=WORK), encoding="utf-8")
    text = _run(folder, "-m", "deepcontext", "profile", "--cpu-rate", "1000", "main.py")
    _assert_told(text, "below main.py:3")
    assert "Lines of packages" in _run(folder, "-m", "deepcontext", "report", "main.dcprof")


def test_a_spawned_child_that_records_itself_is_reported_by_packages(folder: Path) -> None:
    (folder / "main.py").write_text(SPAWNER.format(n=WORK), encoding="utf-8")
    _run(folder, "main.py")
    text = _run(folder, "-m", "deepcontext", "report", "--summary", "child.dcprof")
    # What multiprocessing gives the child with -c is nobody's line.
    _assert_told(text, "outside your code")
