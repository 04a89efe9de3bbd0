"""What one eager launch costs: plain, under deepcontext, and under other tools."""

from __future__ import annotations

import ctypes
import statistics
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness import Bench

pytestmark = [pytest.mark.gpu, pytest.mark.needs("torch")]

ROUNDS = 3
ROOT = Path(__file__).resolve().parents[2]
MEASURE = """
import torch
x = torch.zeros(1024, device="cuda")
def cost():
    torch.cuda.synchronize()
    begun = time.perf_counter_ns()
    for _ in range(20_000):
        x.add_(1)
    spent = time.perf_counter_ns() - begun
    torch.cuda.synchronize()
    return spent / 20_000
cost()
{start}
cost()
report(ns=min(cost() for _ in range(3)))
{stop}
"""
TORCH = (
    "from torch.profiler import profile, ProfilerActivity as A\n"
    "other = profile(activities=[{}]); other.start()"
)


def subscriber(folder: Path) -> Path:
    """Compile the tool that does nothing."""
    library = folder / "empty_subscriber.so"
    command = ["c++", "-std=c++17", "-O2", "-fPIC", "-shared", f"-I{ROOT / 'native'}"]
    command += [str(Path(__file__).parent / "empty_subscriber.cpp"), "-o", str(library), "-ldl"]
    subprocess.run(command, check=True, timeout=120)
    return library


def test_the_tool_that_does_nothing_compiles(tmp_path: Path) -> None:
    library = ctypes.CDLL(str(subscriber(tmp_path)))
    assert library.empty_subscriber_start(b"/no/such/libcupti.so", 0) == -1


def test_launch_overhead(bench: Bench) -> None:
    empty = (
        "import ctypes\nfrom deepcontext.collectors.gpu.libraries import find_cupti\n"
        f"tool = ctypes.CDLL({str(subscriber(bench.folder))!r})\n"
        "assert tool.empty_subscriber_start(find_cupti().path.encode(), {}) == 0"
    )
    own = "import deepcontext; deepcontext.start()"
    ways: dict[str, tuple[str, str, dict[str, str]]] = {
        "plain": ("", "", {}),
        "empty subscriber, callbacks": (empty.format(0), "", {}),
        "empty subscriber, callbacks and records": (empty.format(1), "", {}),
        "deepcontext without the GPU": (
            own,
            "deepcontext.stop()",
            {"DEEPCONTEXT_LIBCUPTI": "/no/such/libcupti.so"},
        ),
        "deepcontext": (own, "deepcontext.stop()", {}),
        "torch.profiler, GPU": (TORCH.format("A.CUDA"), "other.stop()", {}),
        "torch.profiler, CPU and GPU": (TORCH.format("A.CPU, A.CUDA"), "other.stop()", {}),
    }
    figures: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, (start, stop, environment) in ways.items():
            source = MEASURE.format(start=start, stop=stop)
            outcome = bench.run(source, is_profiled=False, environment=environment)
            figures[name].append(outcome.values["ns"])
    costs = {name: statistics.median(each) for name, each in figures.items()}
    for name, cost in costs.items():
        bench.row(f"launch: {name}", f"{cost / costs['plain']:.2f} x plain", "")
    added = costs["deepcontext"] - costs["plain"]
    added_by_torch = costs["torch.profiler, CPU and GPU"] - costs["plain"]
    ratio = added / added_by_torch
    bench.row("added by deepcontext, against torch.profiler", f"{ratio:.2f}", "<= 1")
    assert added <= added_by_torch


@pytest.mark.needs("proton")
def test_launch_overhead_against_proton(bench: Bench) -> None:
    start_proton = (
        "import triton.profiler as proton\n"
        f"proton.start({str(bench.folder / 'proton')!r}, context='python')"
    )
    plain = bench.run(MEASURE.format(start="", stop=""), is_profiled=False).values["ns"]
    proton = bench.run(
        MEASURE.format(start=start_proton, stop="proton.finalize()"), is_profiled=False
    )
    start_deepcontext = "import deepcontext; deepcontext.start()"
    profiled = bench.run(
        MEASURE.format(start=start_deepcontext, stop="deepcontext.stop()"), is_profiled=False
    )
    added = profiled.values["ns"] - plain
    bench.row("launch: Proton with Python contexts", f"{proton.values['ns'] / plain:.2f} x plain")
    assert added <= proton.values["ns"] - plain
