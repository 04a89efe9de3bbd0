"""The package without its native core, as on macOS and Windows: it reads, and says why it cannot record."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import deepcontext
from deepcontext import native_core

if TYPE_CHECKING:
    from collections.abc import Sequence

# Standard modules that Windows lacks.
_POSIX = ("fcntl", "grp", "pwd", "resource", "termios")
_COMMAND = f"""
import sys
sys.modules.update(dict.fromkeys({_POSIX!r}))
from deepcontext.ui.cli.app import main
sys.exit(main(sys.argv[1:]))
"""
_PROGRAM = """
import deepcontext

@deepcontext.scope("twice")
def twice(number):
    return 2 * number

with deepcontext.scope("main"):
    print(twice(21))
deepcontext.step()
print(deepcontext.__version__)
try:
    deepcontext.start()
except deepcontext.errors.EnvironmentProblem as error:
    print(error)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package, without what is compiled, and two profiles."""
    made = tmp_path_factory.mktemp("pure")
    package = Path(deepcontext.__file__).parent
    ignored = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(package, made / "packages" / "deepcontext", ignore=ignored)
    (made / "train.py").write_text("print(sum(i * i for i in range(200_000)))\n")
    for name in ("a.dcprof", "b.dcprof"):
        command = [
            "-m",
            "deepcontext",
            "profile",
            "-q",
            "--cpu-rate",
            "1000",
            "-o",
            name,
            "train.py",
        ]
        subprocess.run([sys.executable, *command], cwd=made, check=True, timeout=120)
    return made


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # With -S no .pth file is read: that of an editable installation leads to the native core.
    dependencies = Path(np.__file__).parents[1]
    path = os.pathsep.join([str(folder / "packages"), str(dependencies)])
    return subprocess.run(
        [sys.executable, "-S", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    "words",
    [
        ["report", "a.dcprof"],
        ["report", "--json", "a.dcprof"],
        ["analyze", "a.dcprof"],
        ["diff", "a.dcprof", "b.dcprof"],
        ["merge", "--unrelated", "a.dcprof", "b.dcprof", "-o", "both.dcprof"],
        ["export", "a.dcprof", "--format", "speedscope", "-o", "a.json"],
        ["view", "a.dcprof", "--html", "a.html"],
        ["--version"],
        ["profile", "--help"],
    ],
    ids=" ".join,
)
def test_profiles_are_read(folder: Path, words: Sequence[str]) -> None:
    done = _run(folder, "-c", _COMMAND, *words)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words", [["profile", "train.py"], ["overhead", "train.py"], ["profile", "true"]], ids=" ".join
)
def test_recording_is_refused_with_the_reason(folder: Path, words: Sequence[str]) -> None:
    done = _run(folder, "-m", "deepcontext", *words)
    assert done.returncode == 4
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert "installed without its native core" in line
    assert "reading profiles works" in line
    assert not (folder / "train.dcprof").exists()


def test_doctor_says_what_is_missing(folder: Path) -> None:
    done = _run(folder, "-m", "deepcontext", "doctor")
    assert done.returncode == 4
    assert "not part of this installation" in " ".join(done.stdout.split())


def test_a_program_with_scopes_runs(folder: Path) -> None:
    (folder / "program.py").write_text(_PROGRAM)
    done = _run(folder, "program.py")
    assert done.returncode == 0, done.stderr
    answer, version, reason = done.stdout.splitlines()
    assert answer == "42"
    assert version == deepcontext.__version__
    assert reason.startswith("cannot record a profile")


def test_a_build_without_the_gil_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    true = sysconfig.get_config_var
    assert "t on " not in native_core.here()
    monkeypatch.setattr(
        sysconfig, "get_config_var", lambda name: 1 if name == "Py_GIL_DISABLED" else true(name)
    )
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert f"CPython {version}t on " in native_core.here()
    assert "with the GIL" in native_core.advice()
