"""Damage to what the native core reads of others: HLO, XLA's traces, tables of Python and of ELF files.

Under AddressSanitizer and UndefinedBehaviorSanitizer, for FUZZ_S seconds each (100 by default). An input that
fails is kept in build/fuzz/found; `build/fuzz/native/fuzz/fuzz_NAME FILE` repeats it.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build/fuzz"
BUDGET_S = float(os.environ.get("FUZZ_S", "100"))
# Names are kept for the life of a process, so that its memory grows with each new one.
ONE_PROCESS_S = 300.0
_PT_LOAD, _PT_GNU_EH_FRAME = 1, 0x6474E550
_PART_BYTES = 1 << 16


def run(*words: str | Path, **environment: str) -> None:
    subprocess.run([*map(str, words)], check=True, cwd=ROOT, env={**os.environ, **environment})


@pytest.fixture(scope="module")
def targets() -> Path:
    """Build the targets, with Clang's libFuzzer where it is installed."""
    clang = shutil.which("clang++-19") or shutil.which("clang++")
    sanitizers = "address,undefined,float-cast-overflow" + (",fuzzer-no-link" if clang else "")
    flags = "-D_GLIBCXX_ASSERTIONS -Wno-deprecated-declarations"
    run(
        *("cmake", "-S", ".", "-B", BUILD, "-DDEEPCONTEXT_EXTENSION=OFF", "-DDEEPCONTEXT_FUZZ=ON"),
        *(f"-DDEEPCONTEXT_SANITIZE={sanitizers}", f"-DCMAKE_CXX_FLAGS={flags}"),
        CXX=clang or "g++",
    )
    run("cmake", "--build", BUILD, "-j2", "--target", "fuzz_targets")
    return BUILD / "native/fuzz"


@pytest.fixture(scope="module")
def corpus() -> Path:
    """Make sound input, once a checkout."""
    folder = BUILD / "corpus"
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        write_tables(folder / "location_table")
        write_objects(folder / "unwind")
        run(sys.executable, "tests/fuzz/programs.py", folder)
        (folder / "done").touch()
    return folder


def write_tables(folder: Path) -> None:
    """Location tables of the code of some modules."""
    folder.mkdir(parents=True)
    number = 0
    for module in ("argparse.py", "ast.py", "typing.py", "tokenize.py"):
        path = Path(sysconfig.get_path("stdlib"), module)
        pending = [compile(path.read_text(encoding="utf-8"), path, "exec")]
        while pending:
            code = pending.pop()
            pending += [each for each in code.co_consts if hasattr(each, "co_linetable")]
            (folder / str(number)).write_bytes(code.co_linetable)
            number += 1


def write_objects(folder: Path) -> None:
    """The ends of loaded parts of shared objects, from their unwind tables on (native/fuzz/unwind.cpp)."""
    folder.mkdir(parents=True)
    for path in sorted(Path(sysconfig.get_config_var("DESTSHARED")).glob("*.so")):
        content = path.read_bytes()
        start, entry_bytes, count = struct.unpack_from("<Q14xHH", content, 32)
        entries = [
            struct.unpack_from("<IIQQQQ", content, start + i * entry_bytes) for i in range(count)
        ]
        for header in [entry for entry in entries if entry[0] == _PT_GNU_EH_FRAME]:
            part = next(e for e in entries if e[0] == _PT_LOAD and e[2] <= header[2] < e[2] + e[5])
            loaded = content[header[2] : min(part[2] + part[5], header[2] + _PART_BYTES)]
            for entry in range(4):  # the first functions of the table, whose places are relative
                (place,) = struct.unpack_from("<i", loaded, 12 + 8 * entry)
                head = struct.pack("<II", 0, place % 2**32)
                (folder / f"{path.name}-{entry}").write_bytes(head + loaded)


@pytest.mark.fuzz
@pytest.mark.timeout(BUDGET_S + 1200)
@pytest.mark.parametrize("target", ["jax_program", "jax_window", "location_table", "unwind"])
def test_no_damage_does_harm(targets: Path, corpus: Path, target: str) -> None:
    found, grown = BUILD / "found", BUILD / "grown" / target
    for folder in (found, grown):
        folder.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + BUDGET_S
    while (left_s := end - time.monotonic()) > 0:
        run(
            *(targets / f"fuzz_{target}", f"-max_total_time={int(min(left_s, ONE_PROCESS_S)) + 1}"),
            *("-timeout=60", "-rss_limit_mb=4096", "-max_len=300000"),
            *(f"-artifact_prefix={found}/{target}-", grown, corpus / target),
            ASAN_OPTIONS="detect_leaks=0",
            UBSAN_OPTIONS="print_stacktrace=1",
        )
