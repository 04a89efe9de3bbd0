"""What the sampler's signal handler calls is on a short list of what may be called there."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[2] / "native"
# The signal handler's file, and the one with the functions that it calls and that are not inline.
FILES = ("sampling/signal_handler.cpp", "core/memory_reader.cpp")
# Source: signal-safety(7); the two of CPython read thread-local storage and one global, and take no
# lock (Python/pystate.c). The profiler's data are plain atomics; Recorder::view only loads.
ALLOWED = {
    "sigaction",
    "sigemptyset",
    "syscall",
    "getpid",
    "getuid",
    "clock_gettime",
    "open",
    "close",
    "fcntl",
    "fstat",
    "memset",
    "memcpy",
    "__errno_location",
    "PyGILState_GetThisThreadState",
    "PyThreadState_GetUnchecked",
    "_PyThreadState_UncheckedGet",
    "deepcontext::Recorder::view(unsigned long) const",
    "deepcontext::MemoryReader::read(void const*, void*, unsigned long) const",
    # by the constructor of MemoryReader, which no handler calls
    "deepcontext::isFatal(deepcontext::OwnCall)",
    # data
    "deepcontext::RecorderRegistry::current_",
    "deepcontext::RecorderRegistry::generation_",
    "deepcontext::RecorderRegistry::recording_",
    "_GLOBAL_OFFSET_TABLE_",
}


@pytest.mark.parametrize("file", FILES)
def test_the_handler_calls_nothing_that_is_not_async_signal_safe(file: str, tmp_path: Path) -> None:
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None or shutil.which("nm") is None:
        pytest.skip("needs a C++ compiler and nm")
    include = sysconfig.get_path("include")
    flags = ["-std=c++17", "-O2", "-fPIC", "-fno-exceptions", "-fno-stack-protector"]
    where = ["-I", str(NATIVE), "-I", include]
    made = tmp_path / "handler.o"
    subprocess.run(
        [compiler, *flags, *where, "-c", str(NATIVE / file), "-o", str(made)], check=True
    )
    undefined = subprocess.run(
        ["nm", "-C", "--undefined-only", str(made)], check=True, capture_output=True, text=True
    ).stdout
    called = set(re.findall(r"^\s*[UVvWw] (.+)$", undefined, re.MULTILINE))
    assert called, "nothing undefined: the wrong file was looked at"
    assert not called - ALLOWED


def test_levels_are_seen_without_a_lock_or_an_allocation() -> None:
    text = (NATIVE / "core" / "recorder.cpp").read_text(encoding="utf-8")
    body = re.search(r"LevelView Recorder::view\(.*?^}", text, re.DOTALL | re.MULTILINE)
    assert body
    assert not re.search(r"lock|mutex|new |vector|string|push|throw", body[0])
