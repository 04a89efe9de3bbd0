"""Each wheel of `make wheels`, installed alone, where there is no compiler."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = [pytest.mark.wheels, pytest.mark.timeout(1200)]

ROOT = Path(__file__).parents[2]
WHEELS = sorted((ROOT / "dist").glob("*.whl"))
NATIVE = [wheel for wheel in WHEELS if f"_{platform.machine()}" in wheel.name]
PURE = [wheel for wheel in WHEELS if wheel.name.endswith("-py3-none-any.whl")]
PROGRAM = """
import hashlib, sys
import numpy

def busy():
    return hashlib.pbkdf2_hmac("sha256", b"a", b"b", 2_000_000)

busy()
print(sys.argv[1:], numpy.ones(3).sum())
"""
TRAINING = """
import torch

model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
for _ in range(5):
    model(torch.randn(32, 64)).sum().backward()
"""


def _python_of(wheel: Path) -> str:
    tag = re.search(r"-cp3(\d+)-", wheel.name)
    assert tag, wheel.name
    command = (ROOT / "tools" / "find_python.sh", f"3.{tag[1]}")
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    if not found:
        pytest.skip(f"no CPython 3.{tag[1]} here; tests/wheels/test_roots.py may have one")
    return found


class Installed:
    """A virtual environment with one wheel, and nothing else on PATH."""

    def __init__(self, folder: Path, python: str, wheel: Path) -> None:
        self.folder = folder
        self.bin = folder / "env" / "bin"
        subprocess.run([ROOT / "tools" / "make_venv.sh", python, folder / "env"], check=True)
        self.run("pip", "install", "-q", "--only-binary", ":all:", str(wheel))

    def run(
        self, name: str, *arguments: str, status: int = 0, path: Sequence[Path] = ()
    ) -> subprocess.CompletedProcess[str]:
        environment = {
            k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "CC", "CXX"))
        }
        environment["PATH"] = str(self.bin)
        if path:
            environment["PYTHONPATH"] = os.pathsep.join(map(str, path))
        done = subprocess.run(
            [self.bin / name, *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done


def test_there_are_wheels() -> None:
    assert NATIVE, "run tools/build_wheels.sh first"
    assert len(PURE) == 1


@pytest.mark.parametrize("wheel", NATIVE, ids=lambda wheel: wheel.name)
def test_profile_report_and_page(wheel: Path, tmp_path: Path) -> None:
    installed = Installed(tmp_path, _python_of(wheel), wheel)
    assert not shutil.which("c++", path=str(installed.bin))
    (tmp_path / "train.py").write_text(PROGRAM)
    installed.run("deepcontext", "doctor")
    done = installed.run("deepcontext", "profile", "--no-report", "train.py", "--epochs", "1")
    assert done.stdout == "['--epochs', '1'] 3.0\n"
    report = installed.run("deepcontext", "report", "train.dcprof").stdout
    assert re.search(r"train\.py:6", report), report
    installed.run("deepcontext", "view", "train.dcprof", "--html", "page.html")
    assert (tmp_path / "page.html").stat().st_size > 100_000


@pytest.mark.parametrize("wheel", NATIVE, ids=lambda wheel: wheel.name)
def test_a_training_step_with_native_frames(wheel: Path, tmp_path: Path) -> None:
    """With the PyTorch of this environment, if it is for the same CPython."""
    torch = pytest.importorskip("torch")
    if f"-cp{sys.version_info[0]}{sys.version_info[1]}-" not in wheel.name:
        pytest.skip("another CPython than that of the installed torch")
    installed = Installed(tmp_path, _python_of(wheel), wheel)
    (tmp_path / "train.py").write_text(TRAINING)
    # After the environment's own packages: the wheel's files win.
    own = next((tmp_path / "env" / "lib").glob("python*/site-packages"))
    (own / "more.pth").write_text(str(Path(torch.__file__).parents[1]))
    installed.run("deepcontext", "profile", "--native", "-q", "train.py")
    report = installed.run("deepcontext", "report", "--full", "train.dcprof").stdout
    assert "aten::addmm" in report
    assert "AddmmBackward0" in report


def test_the_wheel_without_native_code_reads(tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir()
    (made / "train.py").write_text(PROGRAM)
    subprocess.run(
        [sys.executable, "-m", "deepcontext", "profile", "-q", "train.py"], cwd=made, check=True
    )
    installed = Installed(tmp_path, sys.executable, PURE[0])
    installed.run("deepcontext", "report", str(made / "train.dcprof"))
    refused = installed.run("deepcontext", "profile", str(made / "train.py"), status=4)
    assert "installed without its native core" in refused.stderr
