"""Benchmarks run rarely, so a test holds that each still finds what it imports and gives tables."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "benchmarks"
# What others import, and the program that callgrind runs.
SHARED = {"run_all", "paired", "observers", "training_models", "made_job", "counted_program"}

_IMPORT_ALL = """
import importlib, run_all
for name in (*run_all.MODULES, *run_all.UNDER_VALGRIND, *run_all.IN_BROWSER):
    module = importlib.import_module(name)
    assert hasattr(module, "tables") or hasattr(module, "table"), name
import counted_program
"""


def test_each_benchmark_is_imported_and_has_tables() -> None:
    for framework in ("torch", "jax", "playwright"):
        if importlib.util.find_spec(framework) is None:
            pytest.skip(f"needs {framework}")
    command = (sys.executable, "-c", _IMPORT_ALL)
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_make_bench_runs_each_benchmark() -> None:
    text = (FOLDER / "run_all.py").read_text(encoding="utf-8")
    modules = {path.stem for path in FOLDER.glob("*.py")} - SHARED
    assert {name for name in modules if f'"{name}"' not in text} == set()
