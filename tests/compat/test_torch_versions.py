"""One wheel works with the oldest torch supported, the pinned one and the newest on PyPI.

Each torch gets an environment of its own under $DEEPCONTEXT_COMPAT_DIR (default: a folder that goes
away with the test), where the integration tests run against the installed wheel. An environment is
made once and used again. Wheels of torch from PyPI load CUDA's libraries when they are imported,
also on a machine without a GPU: what torch requires is installed, apart from Triton.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.compat, pytest.mark.timeout(3600)]

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = ("2.6.0", "2.13.0", "newest")
PACKAGE_NEEDS = ("numpy", "protobuf", "rich", "flask", "pytest", "pytest-timeout", "hypothesis")
# What holds for every torch; test_paths_mlp.py is about the operators that one version runs.
CORE = (
    "test_backward.py",
    "test_lifecycle.py",
    "test_memory.py",
    "test_modules.py",
    "test_phases.py",
    "test_programs.py",
    "test_scopes.py",
    "test_shapes.py",
    "test_torch_profiler.py",
)
_NOT_TO_IMPORT = ("triton", "pytorch-triton")
_LIST_NEEDS = """
import importlib.metadata, json
from packaging.requirements import Requirement
needs = [Requirement(text) for text in importlib.metadata.requires("torch") or ()]
print(json.dumps([
    f"{need.name}[{','.join(sorted(need.extras))}]{need.specifier}"
    for need in needs
    if need.marker is None or need.marker.evaluate({"extra": ""})
]))
"""


def run(*command: str | Path, **environment: str) -> str:
    """Run a command outside the checkout's own environment; its output, or a failure that shows it."""
    done = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, "PYTHONPATH": "", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, f"{command} failed:\n{done.stdout[-8000:]}"
    return done.stdout


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where environments are kept."""
    chosen = os.environ.get("DEEPCONTEXT_COMPAT_DIR")
    path = Path(chosen) if chosen else tmp_path_factory.mktemp("compat")
    path.mkdir(parents=True, exist_ok=True)
    return path


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the checkout as it is."""
    target = tmp_path_factory.mktemp("wheel")
    run(
        sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation",
        "-w", target, ROOT,
    )  # fmt: skip
    (built,) = target.glob("deepcontext_profiler-*.whl")
    return built


def environment(folder: Path, version: str) -> Path:
    """Return the interpreter of an environment with that torch; "newest" is asked for each time."""
    python = folder / f"torch-{version}" / "bin" / "python"
    if not python.exists():
        run(sys.executable, "-m", "venv", python.parents[1])
    pip(python, "--upgrade", "pip", "packaging", *PACKAGE_NEEDS)
    wanted = "torch" if version == "newest" else f"torch=={version}"
    pip(python, "--upgrade", "--no-deps", wanted)
    needs = json.loads(run(python, "-c", _LIST_NEEDS))
    pip(python, *(need for need in needs if not need.startswith(_NOT_TO_IMPORT)))
    return python


def pip(python: Path, *words: str) -> None:
    run(python, "-m", "pip", "install", "-q", *words)


@pytest.mark.parametrize("version", VERSIONS)
def test_core_of_the_integration_tests(folder: Path, wheel: Path, version: str) -> None:
    python = environment(folder, version)
    pip(python, "--force-reinstall", "--no-deps", str(wheel))
    found = run(
        python, "-c", "import torch, deepcontext; print(torch.__version__, deepcontext.__file__)"
    ).splitlines()[-1]
    installed, _, where = found.partition(" ")
    assert Path(where).is_relative_to(folder), "the tests would not run the installed wheel"
    if version != "newest":
        assert installed.startswith(version)
    tests = [str(ROOT / "tests" / "integration" / "torch" / name) for name in CORE]
    report = run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
    passed = re.search(r"(\d+) passed", report)
    assert passed is not None, report
    assert int(passed[1]) > 100, report
    print(f"torch {installed}: {passed[1]} passed")
