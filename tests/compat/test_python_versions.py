"""The wheel, built for each supported CPython and installed alone, reads its frames rightly."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = [pytest.mark.compat, pytest.mark.timeout(1200)]

_ROOT = Path(__file__).parents[2]
_IDENTITY = (
    "import pathlib, sys, sysconfig;"
    "print('%d.%d' % sys.version_info[:2],"
    " pathlib.Path(sysconfig.get_path('include'), 'Python.h').exists())"
)


def _candidates(version: str) -> Iterator[Path]:
    name = f"python{version}"
    yield from sorted(Path.home().glob(f".pyenv/versions/{version}*/bin/{name}"), reverse=True)
    on_path = shutil.which(name)
    if on_path is not None:
        yield Path(on_path)


def _find_python(version: str) -> Path:
    """A Python of this version that can build extensions; skips when there is none."""
    for python in _candidates(version):
        asked = subprocess.run(
            (python, "-c", _IDENTITY), capture_output=True, text=True, check=False
        )
        if asked.stdout.split() == [version, "True"]:
            return python
    pytest.skip(f"no CPython {version} with headers on PATH or in ~/.pyenv/versions")


def _run(command: Sequence[str | Path], folder: Path) -> str:
    environment = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "PYTHONHOME"}}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_native_tests_pass(version: str, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    _run((_ROOT / "tools" / "make_venv.sh", _find_python(version), environment), tmp_path)
    python = environment / "bin" / "python"
    pip = (python, "-m", "pip", "--disable-pip-version-check")
    _run((*pip, "install", "-q", "pytest>=8.4", "pytest-timeout>=2.3"), tmp_path)
    built = tmp_path / "wheels"
    build_folder = f"--config-settings=build-dir={tmp_path / 'build'}"
    _run((*pip, "wheel", "-q", "--no-deps", build_folder, "-w", built, _ROOT), tmp_path)
    (wheel,) = built.glob("*.whl")
    assert f"-cp{version.replace('.', '')}-" in wheel.name
    _run((*pip, "install", "-q", "--no-deps", wheel), tmp_path)
    tests = _ROOT / "tests" / "native"
    settings = ("-c", _ROOT / "pyproject.toml", "--confcutdir", tests, "-p", "no:cacheprovider")
    output = _run((python, "-m", "pytest", "-q", *settings, tests), tmp_path)
    assert " passed" in output
