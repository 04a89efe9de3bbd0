"""Two hundred short training programs at ten times the usual sampling rate, on each CPython.

Their exit status sums up all losses: each must be that of a plain run. SOAK_RUNS is another number
of runs, DEEPCONTEXT_COMPAT_DIR a folder that keeps the environments of the other CPythons.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from deepcontext.profiler.model.profile import Profile

pytestmark = [pytest.mark.soak, pytest.mark.timeout(7200)]

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("program_train.py")
RUNS = int(os.environ.get("SOAK_RUNS", "200"))
SEEDS = range(4)
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    "OMP_NUM_THREADS": "1",
}


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )


def install(version: str, folder: Path) -> Path:
    """Build a wheel for another CPython and install it alone; return that Python."""
    kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
    found = str(kept[-1]) if kept else shutil.which(f"python{version}")
    if found is None:
        pytest.skip(f"no CPython {version} on PATH or in ~/.pyenv/versions")
    environment = folder / f"soak-{version}"
    python = environment / "bin" / "python"
    build_folder = f"--config-settings=build-dir={folder / f'build-{version}'}"
    commands: list[tuple[str | Path, ...]] = [
        (python, "-m", "pip", "install", "-q", "--force-reinstall", build_folder, ROOT),
    ]
    if not python.exists():
        commands.insert(0, (ROOT / "tools" / "make_venv.sh", found, environment))
    for command in commands:
        done = run(*command)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return python


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    chosen = os.environ.get("DEEPCONTEXT_COMPAT_DIR")
    path = Path(chosen) if chosen else tmp_path_factory.mktemp("environments")
    path.mkdir(parents=True, exist_ok=True)
    return path


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_training_programs_end_as_without_the_profiler(
    version: str, folder: Path, tmp_path: Path
) -> None:
    is_running = version == f"{sys.version_info[0]}.{sys.version_info[1]}"
    python = Path(sys.executable) if is_running else install(version, folder)
    # PyTorch is in the environment of the tests only: its wheels for others are too large.
    has_torch = is_running and importlib.util.find_spec("torch") is not None
    kinds = ("python", "torch") if has_torch else ("python",)
    programs = [(kind, str(seed)) for seed in SEEDS for kind in kinds]

    def profile(number: int) -> tuple[tuple[str, str], int, str, int]:
        words = programs[number % len(programs)]
        written = tmp_path / f"{number}.dcprof"
        profiler = (python, "-X", "faulthandler", "-m", "deepcontext", "profile", "-q")
        done = run(*profiler, "--cpu-rate", "1000", "-o", written, PROGRAM, *words)
        samples = Profile.load(written).trust.counters["samples_running"] if written.exists() else 0
        written.unlink(missing_ok=True)
        return words, done.returncode, done.stdout + done.stderr, samples

    plain = {}
    for words in programs:
        done = run(python, PROGRAM, *words)
        assert re.fullmatch(r"\d+\.\d+\n", done.stdout), done
        plain[words] = done.returncode, done.stdout + done.stderr
    with ThreadPoolExecutor(os.cpu_count()) as executor:
        answers = list(executor.map(profile, range(RUNS)))
    statuses = Counter(status for _, status, _, _ in answers)
    samples = sum(count for *_, count in answers)
    print(f"{version}: {len(answers)} runs, {samples} samples, statuses {dict(statuses)}")
    assert samples > 0
    failed = [
        (words, status, output[-2000:])
        for words, status, output, _ in answers
        if (status, output) != plain[words]
    ]
    assert not failed, f"{len(failed)} of {len(answers)} runs: {failed[:3]}"
