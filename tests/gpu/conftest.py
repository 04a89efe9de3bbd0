"""Skips with the reason where there is no GPU or no time left; a table and a summary (`results.py`)."""

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
import results

from deepcontext.collectors.gpu.libraries import has_amd_driver, has_nvidia_driver

if TYPE_CHECKING:
    from collections.abc import Generator

_QUESTIONS = {
    "torch": "import torch; assert torch.cuda.is_available(), 'torch sees no CUDA device'",
    "triton": "import triton, torch; assert torch.cuda.is_available(), 'torch sees no CUDA device'",
    "proton": "import triton.profiler, torch; assert torch.cuda.is_available(), 'no CUDA device'",
    "jax": "import jax; assert jax.default_backend() == 'gpu', 'jax has no GPU backend'",
    "cupti-python": "from cupti import cupti",
}
# Of a command, with what was spent before the tests.
_BUDGET_S = 480.0
_USUAL_S = 30.0  # of a test
_NO_TIME = "not reached"
_RESULTS = pytest.StashKey["results.Results"]()


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
    spent = float(os.environ.get("DEEPCONTEXT_GPU_SET_UP_S", "0"))
    spent += _results(request.config).elapsed_s
    takes = request.node.get_closest_marker("takes")
    if spent > _BUDGET_S - (takes.args[0] if takes else _USUAL_S):
        pytest.skip(f"{_NO_TIME}: {spent:.0f} s of the command's time are over")
    is_amd = request.path.name.startswith("test_amd")
    if not (has_amd_driver() if is_amd else has_nvidia_driver()):
        vendor = "AMD" if is_amd else "NVIDIA"
        pytest.skip(f"no {vendor} driver on this machine: nothing here can be shown without a GPU")
    for mark in request.node.iter_markers("needs"):
        for framework in mark.args:
            if lack := _lack(framework):
                pytest.skip(f"{framework} cannot be used here: {lack}")


@pytest.fixture
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> harness.Bench:
    """Run programs, and write figures to the table."""
    return harness.Bench(tmp_path, _results(request.config), request.node.name)


def _results(config: pytest.Config) -> results.Results:
    """Return the table and the summary, begun with the first test of this folder."""
    if _RESULTS not in config.stash:
        folder = os.environ.get("OUT") or str(Path(__file__).resolve().parents[2] / "build" / "gpu")
        part = os.environ.get("DEEPCONTEXT_GPU_PART", "all")
        config.stash[_RESULTS] = results.Results(Path(folder), part)
    return config.stash[_RESULTS]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Remember which tests there are to reach."""
    here = Path(__file__).resolve().parent
    tests = [item.name for item in session.items if here in item.path.parents]
    if tests:
        _results(session.config).expect(tests)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Write the test's outcome to the summary."""
    report = yield
    is_late = report.skipped and _NO_TIME in report.longreprtext
    if (report.when == "call" or not report.passed) and not is_late:
        # Of a skipped test, the file's path, the line and the reason.
        skipped = report.longrepr if isinstance(report.longrepr, tuple) else None
        text = skipped[2] if skipped else report.longreprtext
        why = (text.strip().splitlines() or [""])[-1]
        seconds = call.duration
        _results(item.config).end_test(item.name, report.outcome, seconds, why)
    return report
