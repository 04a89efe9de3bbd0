"""What one thread publishes and another reads is ordered, also on processors that order little.

x86-64 orders loads and stores enough to hide a missing order, and so does an emulator that runs on it.
The compiler's own listing shows the order that was asked for, whatever the processor.
`docs/decisions/0079-what-orders-memory-between-threads.md` lists the pairs.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Final

import pytest

NATIVE = Path(__file__).parents[2] / "native"
ACQUIRE: Final = (
    2  # Source: GCC's manual, "Built-in Functions for Memory Model Aware Atomic Operations"
)
RELEASE: Final = 3


def _listing(code: str, folder: Path) -> str:
    """Return GCC's listing of the functions in `code`, after it has optimized them."""
    compiler = shutil.which("g++")
    if compiler is None or "clang" in subprocess.check_output([compiler, "--version"], text=True):
        pytest.skip("needs GCC")
    (folder / "code.cpp").write_text(code, "utf-8")
    flags = ["-std=c++17", "-O2", "-fdump-tree-optimized=listing"]
    include = ["-I", str(NATIVE), "-I", sysconfig.get_path("include")]
    subprocess.run(
        [compiler, *flags, *include, "-c", "code.cpp", "-o", "code.o"], cwd=folder, check=True
    )
    return (folder / "listing").read_text("utf-8")


def _function(listing: str, name: str) -> str:
    """Return the body of the function with this name."""
    pattern = r"^;; Function (\S+) \(.*?$(.*?)(?=^;; Function |\Z)"
    bodies = re.findall(pattern, listing, re.MULTILINE | re.DOTALL)
    found = [body for declared, body in bodies if f"::{declared}".endswith(f"::{name}")]
    assert len(found) == 1, f"{name}: {[declared for declared, _ in bodies]}"
    return str(found[0])


def _orders(body: str, operation: str) -> list[int]:
    """Return the orders of the atomic loads, stores or fences of a function, in their order."""
    calls = re.findall(rf"__atomic_{operation}(?:_\d+)? \((.*)\);", body)
    return [int(call.rsplit(", ", 1)[-1]) for call in calls]


def test_a_count_is_published_after_its_values(tmp_path: Path) -> None:
    code = '#include "core/metric_row.cpp"\nvoid put(deepcontext::MetricRow &row) { row.add(7); }'
    listing = _listing(code, tmp_path)
    assert _orders(_function(listing, "put"), "store")[-1] == RELEASE
    assert _orders(_function(listing, "MetricRow::assign"), "store")[-1] == RELEASE
    assert _orders(_function(listing, "MetricRow::read"), "load")[0] == ACQUIRE


def test_a_hook_that_records_sees_the_session(tmp_path: Path) -> None:
    code = """
        #include "core/recorder.h"
        #include "gpu/cupti/collector.h"
        #include "gpu/hip/collector.h"
        bool ask() { return deepcontext::RecorderRegistry::isRecording(); }
        using namespace deepcontext::gpu;
        bool askCupti(const cupti::CuptiCollector &it) { return it.CuptiCollector::isRunning(); }
        bool askHip(const HipCollector &it) { return it.HipCollector::isRunning(); }
        bool askStalls(const cupti::StallSampler &it) { return it.isRunning(); }
    """
    listing = _listing(code, tmp_path)
    for name in ("ask", "askCupti", "askHip", "askStalls"):
        assert _orders(_function(listing, name), "load") == [ACQUIRE], name


def test_a_hook_of_an_allocator_sees_the_function_it_replaced(tmp_path: Path) -> None:
    listing = _listing('#include "torch/memory.cpp"', tmp_path)
    for name in ("hookMemalign", "hookFree", "checkMemalign", "checkFree"):
        assert ACQUIRE in _orders(_function(listing, name), "thread_fence"), name


def test_what_is_read_of_a_sleeping_thread_is_read_before_its_clock(tmp_path: Path) -> None:
    listing = _listing('#include "sampling/thread_visits.cpp"', tmp_path)
    body = _function(listing, "ThreadVisits::readStill")
    between = body[body.index("RemotePython::sample") :]
    between = between[: between.index("KernelThreads::cpuNs")]
    assert _orders(between, "thread_fence") == [ACQUIRE]
