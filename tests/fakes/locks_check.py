"""Watch that Python's memory is not used while a lock of the profiler is held (locks_check.c)."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from deepcontext import _native

SOURCE = Path(__file__).with_suffix(".c")


def build(folder: Path) -> Path:
    """Compile the checker; skips the test where there is no C compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    library = folder / "locks_check.so"
    include = f"-I{sysconfig.get_path('include')}"
    options = ["-O1", "-shared", "-fPIC", include, "-o", str(library)]
    subprocess.run([compiler, *options, str(SOURCE)], check=True)
    return library


class LocksCheck:
    """Aborts the process when the rule is broken, from the construction on."""

    def __init__(self, library: str | Path) -> None:
        self._library = ctypes.PyDLL(str(library))
        native = ctypes.CDLL(_native.__file__)
        self._library.locks_check_install(
            ctypes.cast(native.deepcontext_locks_held, ctypes.c_void_p)
        )

    def count(self) -> int:
        """Return how often Python's memory was used since the construction."""
        return int(self._library.locks_check_count())
