"""Profiles of the programs in `cases/`, made once for all tests."""

from __future__ import annotations

import functools
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deepcontext
from deepcontext.profiler.profile import Profile

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in (HERE / "cases").glob("*.py"))
TORCH = [name for name in NAMES if not name.startswith(("jax_", "gpu_"))]
JAX = [name for name in NAMES if name.startswith("jax_")]
# On AMD's device what the others do on NVIDIA's.
AMD = [name for name in NAMES if name.startswith("gpu_warp_")]
NVIDIA = [name for name in NAMES if name.startswith("gpu_") and name not in AMD]
sys.path.insert(0, str(HERE.parent / "fakes"))
import kit  # noqa: E402  a plain file of the tests

_PACKAGE = Path(str(deepcontext.__file__)).parents[1]


def _record(folder: Path, mode: str, names: list[str]) -> str:
    """Run `record_cases.py`; return what it printed."""
    _require("jax" if names[0].startswith("jax_") else "torch")
    return _run("record_cases.py", str(folder), mode, *names)


def _require(framework: str) -> None:
    """Skip where a framework is missing; it is not imported, which leaves variables behind."""
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"needs {framework}")


def _run(*words: str) -> str:
    words = (sys.executable, str(HERE / words[0]), *words[1:])
    environment = {**os.environ, "PYTHONPATH": str(_PACKAGE)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def record() -> Callable[[Path, str, list[str]], str]:
    """Return a function that runs `record_cases.py` and returns what it printed."""
    return _record


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that records all cases of a kind when one of them is asked for."""

    @functools.cache
    def folder_of(kind: str) -> Path:
        folder = tmp_path_factory.mktemp(kind)
        if kind == "gpu":
            _require("torch")
            fakes = str(kit.build(tmp_path_factory.mktemp("fakes")))
            for interface, names in (("cupti", NVIDIA), ("rocprofiler", AMD)):
                _run("record_gpu_cases.py", str(folder), fakes, interface, *names)
        else:
            _record(folder, "profile", JAX if kind == "jax" else TORCH)
        return folder

    return folder_of


@pytest.fixture
def case(recorded: Callable[[str], Path]) -> Callable[[str], Profile]:
    """Return the profile of a case by its name."""

    def load(name: str) -> Profile:
        kind = name.partition("_")[0]
        folder = recorded(kind if kind in {"jax", "gpu"} else "torch")
        return Profile.load(folder / f"{name}.dcprof")

    return load
