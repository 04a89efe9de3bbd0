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

    Verdict = Callable[[Profile], None]

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
_RECORDINGS = 3


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


def _record_gpu(folder: Path, fakes: Path, names: list[str]) -> None:
    """Run `record_gpu_cases.py`, a process for each vendor that the cases are of."""
    _require("torch")
    for interface, all_names in (("cupti", NVIDIA), ("rocprofiler", AMD)):
        if chosen := [name for name in names if name in all_names]:
            _run("record_gpu_cases.py", str(folder), str(fakes), interface, *chosen)


@pytest.fixture
def record() -> Callable[[Path, str, list[str]], str]:
    """Return a function that runs `record_cases.py` and returns what it printed."""
    return _record


@pytest.fixture(scope="session")
def record_profiles(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[list[str]], Path]:
    """Return a function that profiles cases of one kind; it returns the folder of the profiles."""

    @functools.cache
    def fakes() -> Path:
        return kit.build(tmp_path_factory.mktemp("fakes"))

    def profiled(names: list[str]) -> Path:
        folder = tmp_path_factory.mktemp("cases")
        if names[0].startswith("gpu_"):
            _record_gpu(folder, fakes(), names)
        else:
            _record(folder, "profile", names)
        return folder

    return profiled


@pytest.fixture(scope="session")
def recorded(record_profiles: Callable[[list[str]], Path]) -> Callable[[str], Path]:
    """Return a function that records all cases of a kind when one of them is asked for."""
    names = {"gpu": [*NVIDIA, *AMD], "jax": JAX, "torch": TORCH}

    @functools.cache
    def folder_of(kind: str) -> Path:
        return record_profiles(names[kind])

    return folder_of


@pytest.fixture
def case(recorded: Callable[[str], Path]) -> Callable[[str], Profile]:
    """Return the profile of a case by its name."""

    def load(name: str) -> Profile:
        kind = name.partition("_")[0]
        folder = recorded(kind if kind in {"jax", "gpu"} else "torch")
        return Profile.load(folder / f"{name}.dcprof")

    return load


@pytest.fixture
def settle() -> Callable[[Callable[[int], Profile], Verdict], None]:
    """Return a function that holds a verdict against a recording, and if need be against others.

    What a case shows are shares and ratios of times, and another program on the same cores disturbs
    them. A disturbed measurement is repeated; a wrong analyzer is wrong every time. So a verdict that
    fails is asked again of a fresh recording, twice at most, and what the last one says counts.
    """

    def settled(record: Callable[[int], Profile], verdict: Verdict) -> None:
        for attempt in range(_RECORDINGS):
            profile = record(attempt)
            try:
                verdict(profile)
            except AssertionError as error:
                if attempt == _RECORDINGS - 1:
                    raise
                print(f"recorded again, because: {error}")
            else:
                return

    return settled


@pytest.fixture
def judge(
    case: Callable[[str], Profile],
    record_profiles: Callable[[list[str]], Path],
    settle: Callable[[Callable[[int], Profile], Verdict], None],
) -> Callable[[str, Verdict], None]:
    """Return a function that holds a verdict against the profile of a case; see `settle`."""

    def judged(name: str, verdict: Verdict) -> None:
        def profile_of(attempt: int) -> Profile:
            if not attempt:
                return case(name)
            return Profile.load(record_profiles([name]) / f"{name}.dcprof")

        settle(profile_of, verdict)

    return judged
