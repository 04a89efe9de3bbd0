"""A Python whose frames the core does not know is refused when the core is compiled, with the reason."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

HEADER = Path(__file__).parents[2] / "native" / "python" / "interpreter_frame.h"


def _compile(folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    (folder / "code.cpp").write_text(f'#include <Python.h>\n#include "{HEADER}"\n')
    include = sysconfig.get_path("include")
    return subprocess.run(
        [compiler, "-std=c++17", "-fsyntax-only", "-I", include, *flags, folder / "code.cpp"],
        capture_output=True,
        text=True,
        check=False,
    )


def test_this_python_is_known(tmp_path: Path) -> None:
    done = _compile(tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_python_without_the_gil_is_refused(tmp_path: Path) -> None:
    done = _compile(tmp_path, "-DPy_GIL_DISABLED")
    assert done.returncode != 0
    assert "needs a CPython with the GIL" in done.stderr
