"""Skips with the reason where there is no GPU, and a table of figures at the end."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))  # `tests` is not a package
import harness

from deepcontext.collectors.gpu.libraries import has_amd_driver, has_nvidia_driver

if TYPE_CHECKING:
    from collections.abc import Iterator

_QUESTIONS = {
    "torch": "import torch; assert torch.cuda.is_available(), 'torch sees no CUDA device'",
    "triton": "import triton, torch; assert torch.cuda.is_available(), 'torch sees no CUDA device'",
    "proton": "import triton.profiler, torch; assert torch.cuda.is_available(), 'no CUDA device'",
    "jax": "import jax; assert jax.default_backend() == 'gpu', 'jax has no GPU backend'",
    "cupti-python": "from cupti import cupti",
}
_ROWS: list[tuple[str, str, str]] = []


@functools.cache
def _lack(framework: str) -> str:
    """Return why a framework cannot be used on the GPU, or ""."""
    done = subprocess.run(
        [sys.executable, "-c", _QUESTIONS[framework]],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.stderr.strip().splitlines()[-1] if done.returncode else ""


@pytest.fixture(autouse=True)
def _needs(request: pytest.FixtureRequest) -> None:
    """Skip what this machine cannot run; `pytest.mark.needs("torch")` names a framework."""
    is_amd = request.path.name.startswith("test_amd")
    if not (has_amd_driver() if is_amd else has_nvidia_driver()):
        vendor = "AMD" if is_amd else "NVIDIA"
        pytest.skip(f"no {vendor} driver on this machine: nothing here can be shown without a GPU")
    for mark in request.node.iter_markers("needs"):
        for framework in mark.args:
            if lack := _lack(framework):
                pytest.skip(f"{framework} cannot be used here: {lack}")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[harness.Bench]:
    """Run programs and keep figures for the table.

    The table is written after every test: what was measured survives a run that is cut short.
    """
    made = harness.Bench(tmp_path)
    yield made
    _ROWS.extend(made.rows)
    path = os.environ.get("DEEPCONTEXT_GPU_TABLE")
    if _ROWS and path:
        Path(path).write_text("\n".join(_table()) + "\n", encoding="utf-8")


def _table() -> list[str]:
    lines = ["| check | measured | bound |", "|---|---|---|"]
    return lines + [f"| {check} | {figure} | {bound} |" for check, figure, bound in _ROWS]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table, which also stands where $DEEPCONTEXT_GPU_TABLE says."""
    if _ROWS:
        terminalreporter.section(f"{harness.VENDOR} GPU")
        terminalreporter.write_line("\n".join(_table()))
