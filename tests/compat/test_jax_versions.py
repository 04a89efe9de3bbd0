"""The wheel works with the oldest jax supported, the pinned one and the newest on PyPI.

Each jax gets an environment of its own under $DEEPCONTEXT_COMPAT_DIR (default: a folder that goes
away with the test), with the newest Python that it and this machine have, and the integration tests
run against the installed wheel. An environment is made once and used again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.compat, pytest.mark.timeout(3600)]

ROOT = Path(__file__).resolve().parents[2]
# jax, and the Pythons to try: jax 0.11 and newer need 3.12.
VERSIONS = {
    "0.8.2": ("3.11", "3.12", "3.13"),
    "0.10.2": ("3.11", "3.12", "3.13"),
    "newest": ("3.14", "3.13", "3.12"),
}
NEEDS = ("numpy", "protobuf", "rich", "flask", "pytest", "pytest-timeout", "hypothesis")


def run(*command: str | Path) -> str:
    """Run a command outside the checkout's own environment; its output, or a failure that shows it."""
    done = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, "PYTHONPATH": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, f"{command} failed:\n{done.stdout[-8000:]}"
    return done.stdout


def find_python(versions: tuple[str, ...]) -> str:
    for version in versions:
        if sys.version_info[:2] == tuple(int(part) for part in version.split(".")):
            return sys.executable
        kept = sorted(Path.home().glob(f".pyenv/versions/{version}*/bin/python{version}"))
        found = str(kept[-1]) if kept else shutil.which(f"python{version}")
        if found is not None:
            return found
    pytest.skip(f"none of CPython {', '.join(versions)} is on this machine")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where environments are kept."""
    chosen = os.environ.get("DEEPCONTEXT_COMPAT_DIR")
    path = Path(chosen) if chosen else tmp_path_factory.mktemp("compat")
    path.mkdir(parents=True, exist_ok=True)
    return path


@pytest.mark.parametrize("version", VERSIONS)
def test_integration_tests_pass(folder: Path, tmp_path: Path, version: str) -> None:
    python = folder / f"jax-{version}" / "bin" / "python"
    if not python.exists():
        run(ROOT / "tools" / "make_venv.sh", find_python(VERSIONS[version]), python.parents[1])
    pip = (python, "-m", "pip", "--disable-pip-version-check")
    wanted = "jax" if version == "newest" else f"jax=={version}"
    run(*pip, "install", "-q", "--upgrade", wanted, *NEEDS)
    build_folder = f"--config-settings=build-dir={tmp_path / 'build'}"
    run(*pip, "wheel", "-q", "--no-deps", build_folder, "-w", tmp_path, ROOT)
    (wheel,) = tmp_path.glob("deepcontext_profiler-*.whl")
    run(*pip, "install", "-q", "--force-reinstall", "--no-deps", wheel)
    where = run(python, "-c", "import deepcontext; print(deepcontext.__file__)").splitlines()[-1]
    assert Path(where).is_relative_to(folder), "the tests would not run the installed wheel"
    tests = (
        ROOT / "tests" / "integration" / "jax",
        ROOT / "tests" / "collectors" / "jax" / "test_hlo.py",
    )
    # Warnings of other versions of jax are ignored; test_torch_and_jax.py is skipped without torch.
    options = ("-q", "-p", "no:cacheprovider", "-W", "ignore")
    assert " passed" in run(python, "-m", "pytest", *options, *tests)
