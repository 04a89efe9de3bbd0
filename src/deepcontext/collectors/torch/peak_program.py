"""The program that measures a machine's peaks: products of matrices by type, and a copy. Prints JSON.

Runs in a process of its own (`peak_measurement.py`), so that nothing else computes in it. Imports nothing of
deepcontext. Each figure is the best of several runs, because a neighbour on the machine only ever takes
time away; the spread says how much.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

torch: Any = importlib.import_module("torch")
_TYPES = {
    "f32": torch.float32,
    "f64": torch.float64,
    "bf16": torch.bfloat16,
    "f16": torch.float16,
    "i64": torch.int64,
    "i32": torch.int32,
}
# A product is made larger until it takes this long, so that starting it costs nothing in comparison.
_LEAST_S = 0.02
_LARGEST = 4096
_SMALLEST = 256
# Runs of each figure: enough to meet a moment in which no neighbour computes.
_LEAST_RUNS = 5
_LEAST_TOTAL_S = 0.7
# A type without a fast path can take seconds for one product.
_MOST_TOTAL_S = 3.0
_LEAST_COPY_BYTES = 64 << 20
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def measure(threads: int) -> dict[str, Any]:
    """Return the peaks of a number of threads, with keys as in a file of peaks."""
    torch.set_num_threads(threads)
    flops, spread = {}, {}
    for name, dtype in _TYPES.items():
        with contextlib.suppress(RuntimeError):  # a type that torch cannot multiply here
            flops[name], spread[name] = _product(dtype)
    moved, spread["copy"] = _copy()
    return {
        "threads": threads,
        "flops_per_second": flops,
        "bytes_per_second": moved,
        "spread": spread,
    }


def _product(dtype: object) -> tuple[float, float]:
    size = _SMALLEST
    while True:
        a, b = (torch.rand(size, size).to(dtype) for _ in range(2))
        multiply = functools.partial(torch.mm, a, b)
        multiply()  # the first call of a size prepares the library
        took = _timed(multiply)
        if took >= _LEAST_S or size == _LARGEST:
            break
        size *= 2
    best, spread = _best(multiply)
    return 2 * size**3 / best, spread


def _copy() -> tuple[float, float]:
    elements = _copy_bytes() // 4
    source, target = torch.ones(elements), torch.zeros(elements)
    best, spread = _best(lambda: target.copy_(source))
    return 2 * 4 * elements / best, spread


def _copy_bytes() -> int:
    """Return a size beyond the caches, so that memory is measured, but a small part of what is free."""
    largest = _LEAST_COPY_BYTES
    for file in _CACHES.glob("index*/size"):
        with contextlib.suppress(OSError, ValueError):
            largest = max(largest, int(file.read_text().strip().removesuffix("K")) << 10)
    return min(largest, _free_bytes() // 8)


def _free_bytes() -> int:
    with open("/proc/meminfo", encoding="ascii") as lines:  # noqa: PTH123
        for line in lines:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    return 8 * _LEAST_COPY_BYTES


def _best(run: Callable[[], object]) -> tuple[float, float]:
    """Return the shortest of several runs, seconds, and how much longer the median took."""
    times = [_timed(run)]
    while sum(times) < (_LEAST_TOTAL_S if len(times) >= _LEAST_RUNS else _MOST_TOTAL_S):
        times.append(_timed(run))
    best = min(times)
    return best, statistics.median(times) / best - 1


def _timed(run: Callable[[], object]) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def measure_all() -> list[dict[str, Any]]:
    """Return the peaks of one thread, and of as many as torch uses: at least those of one."""
    rows = [measure(count) for count in sorted({1, torch.get_num_threads()})]
    one, most = rows[0]["flops_per_second"], rows[-1]["flops_per_second"]
    rows[-1]["flops_per_second"] = {name: max(most[name], one.get(name, 0.0)) for name in most}
    rows[-1]["bytes_per_second"] = max(row["bytes_per_second"] for row in rows)
    return rows


if __name__ == "__main__":
    json.dump(measure_all(), sys.stdout)
