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
from deepcontext.profiler.model.profile import Profile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Verdict = Callable[[Profile], None]

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in (HERE / "cases").glob("*.py"))
# These run on a simulated AMD device, the others on an NVIDIA one.
AMD = [name for name in NAMES if name.startswith("gpu_warp_")]
NVIDIA = [name for name in NAMES if name.startswith("gpu_") and name not in AMD]
sys.path.insert(0, str(HERE.parent / "fakes"))
import kit  # noqa: E402  a plain file of the tests

_PACKAGE = Path(str(deepcontext.__file__)).parents[1]
_RECORDINGS = 3


def _framework(name: str) -> str:
    return "jax" if name.startswith("jax_") else "torch"


class _Recorder:
    """A process that profiles the cases of one framework on request.

    Each test waits for its own case only, however long all of them take on a busy machine.
    """

    def __init__(self, folder: Path, framework: str) -> None:
        _require(framework)
        self.folder = folder
        self._errors = (folder / "errors.txt").open("w+", encoding="utf-8")
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "record_cases.py"), str(folder), "profile", framework],
            # Peaks are measured for this process, whatever the user's cache folder has.
            env={**_environment(), "XDG_CACHE_HOME": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def record(self, name: str, *, warm: bool = False) -> Path:
        """Return the profile of a case; `warm`: of its second run in this process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{name} warm\n" if warm else f"{name}\n")
        self._process.stdin.flush()
        # The output of the case comes first; a process that has failed sends nothing.
        if f"recorded {name}\n" not in iter(self._process.stdout.readline, ""):
            self._errors.seek(0)
            raise AssertionError(self._errors.read())
        return self.folder / f"{name}.dcprof"

    def stop(self) -> None:
        """End the process; further calls do nothing."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()
        self._errors.close()


def _require(framework: str) -> None:
    """Skip where a framework is missing, without an import, which would leave variables behind."""
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"needs {framework}")


def _run(*words: str) -> str:
    words = (sys.executable, str(HERE / words[0]), *words[1:])
    done = subprocess.run(words, env=_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(_PACKAGE)}


def _record_gpu(folder: Path, fakes: Path, names: list[str]) -> None:
    """Run `record_gpu_cases.py` in one process for each vendor of the cases."""
    _require("torch")
    for interface, all_names in (("cupti", NVIDIA), ("rocprofiler", AMD)):
        if chosen := [name for name in names if name in all_names]:
            _run("record_gpu_cases.py", str(folder), str(fakes), interface, *chosen)


@pytest.fixture
def seconds(tmp_path: Path) -> Callable[[list[str]], list[list[float]]]:
    """Return a function that measures the processor seconds of unprofiled runs of each case."""

    def timed(names: list[str]) -> list[list[float]]:
        framework = _framework(names[0])
        _require(framework)
        output = _run("record_cases.py", str(tmp_path), "time", framework, *names)
        rows = [line.split() for line in output.splitlines() if line.startswith("seconds ")]
        return [[float(each) for each in row[2:]] for row in rows]

    return timed


@pytest.fixture(scope="session")
def fresh_recorder(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[str], _Recorder]]:
    """Return a function that starts a process to record cases of a framework."""
    started: list[_Recorder] = []

    def start(framework: str) -> _Recorder:
        started.append(_Recorder(tmp_path_factory.mktemp(framework), framework))
        return started[-1]

    yield start
    for each in started:
        each.stop()


@pytest.fixture(scope="session")
def record_gpu(tmp_path_factory: pytest.TempPathFactory) -> Callable[[list[str]], Path]:
    """Return a function that profiles cases on a simulated GPU; it returns the profiles' folder."""

    @functools.cache
    def fakes() -> Path:
        return kit.build(tmp_path_factory.mktemp("fakes"))

    def recorded(names: list[str]) -> Path:
        folder = tmp_path_factory.mktemp("cases")
        _record_gpu(folder, fakes(), names)
        return folder

    return recorded


@pytest.fixture(scope="session")
def recorded(
    fresh_recorder: Callable[[str], _Recorder], record_gpu: Callable[[list[str]], Path]
) -> Callable[[str], Path]:
    """Return a function that gives the profile of a case, which is recorded once."""
    recorder_of = functools.cache(fresh_recorder)
    folder_of_gpu = functools.cache(lambda: record_gpu([*NVIDIA, *AMD]))

    @functools.cache
    def profile_of(name: str) -> Path:
        if name.startswith("gpu_"):
            return folder_of_gpu() / f"{name}.dcprof"
        return recorder_of(_framework(name)).record(name)

    return profile_of


@pytest.fixture
def case(recorded: Callable[[str], Path]) -> Callable[[str], Profile]:
    """Return the profile of a case by its name."""
    return lambda name: Profile.load(recorded(name))


@pytest.fixture
def settle() -> Callable[[Callable[[int], Profile], Verdict], None]:
    """Return a function that checks a verdict on a recording, and on further ones if it fails.

    A verdict depends on shares and ratios of times, which another program on the same cores can
    disturb. A wrong analyzer fails on every recording. Therefore a verdict that fails is checked
    again on a fresh recording, at most twice, and the last result counts.
    """

    def settled(record: Callable[[int], Profile], verdict: Verdict) -> None:
        for attempt in range(_RECORDINGS):
            profile = record(attempt)
            try:
                verdict(profile)
            except (AssertionError, ValueError) as error:  # ValueError: another number of findings
                if attempt == _RECORDINGS - 1:
                    raise
                print(f"recorded again, because: {error}")
            else:
                return

    return settled


@pytest.fixture
def judge(
    case: Callable[[str], Profile],
    fresh_recorder: Callable[[str], _Recorder],
    record_gpu: Callable[[list[str]], Path],
    settle: Callable[[Callable[[int], Profile], Verdict], None],
) -> Callable[[str, Verdict], None]:
    """Return a function that checks a verdict on the profile of a case; see `settle`."""

    def judged(name: str, verdict: Verdict) -> None:
        def profile_of(attempt: int) -> Profile:
            if not attempt:
                return case(name)
            if name.startswith("gpu_"):
                return Profile.load(record_gpu([name]) / f"{name}.dcprof")
            recorder = fresh_recorder(_framework(name))
            profile = recorder.record(name)
            recorder.stop()
            return Profile.load(profile)

        settle(profile_of, verdict)

    return judged


@pytest.fixture
def judge_warm(
    fresh_recorder: Callable[[str], _Recorder],
    settle: Callable[[Callable[[int], Profile], Verdict], None],
) -> Callable[[str, Verdict], None]:
    """Return a function like `judge`, for profiles without what a first run of PyTorch has to load.

    The shares of JAX's findings are of the device's time, in which nothing is loaded.
    """

    def judged(name: str, verdict: Verdict) -> None:
        framework = _framework(name)

        def profile_of(_: int) -> Profile:
            recorder = fresh_recorder(framework)
            profile = recorder.record(name, warm=framework == "torch")
            recorder.stop()
            return Profile.load(profile)

        settle(profile_of, verdict)

    return judged
