"""Run a step of a workload many times, plain or below another tool, and print what the steps took.

    overhead_program.py WORKLOAD TOOL DEVICE STEPS FOLDER

DEVICE is "cuda", or "cpu" for a small model. TOOL is "none" (also below `deepcontext profile`),
"torch", "torch-stack", "proton" or "jax"; what it writes lies in FOLDER. The last line printed is JSON:
ms of a step in each of ten blocks, the bytes of the device in use, and when the work ended.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_BLOCKS = 10
_WARM_UP_STEPS = 10


def begin(tool: str, folder: Path) -> Callable[[], object]:
    """Start a tool; return what stops it and writes its file."""
    if tool in {"torch", "torch-stack"}:
        from torch import profiler

        record = profiler.profile(with_stack=tool == "torch-stack")
        record.start()

        def write() -> None:
            record.stop()
            record.export_chrome_trace(str(folder / "trace.json"))

        return write
    if tool == "proton":
        proton: Any = importlib.import_module("triton.profiler")
        proton.start(str(folder / "proton"), context="python")
        return lambda: proton.finalize()
    if tool == "jax":
        import jax

        jax.profiler.start_trace(str(folder))
        return lambda: jax.profiler.stop_trace()
    return lambda: None


def make(workload: str, device: str) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return the step, and what waits for the device."""
    is_small = device == "cpu"
    if workload == "jax_transformer":
        import workload_jax

        return workload_jax.transformer(is_small=is_small), lambda: None
    import torch
    import workloads

    torch.manual_seed(0)
    step = workloads.WORKLOADS[workload](device, is_small=is_small)
    return step, torch.cuda.synchronize if device == "cuda" else lambda: None


def device_bytes() -> int:
    """Return how much memory of the first device is in use, 0 where the driver does not say."""
    command = ("nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "--id=0")
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        return int(done.stdout) << 20
    except (OSError, ValueError, subprocess.SubprocessError):
        return 0


def main() -> None:
    """Measure, and print."""
    workload, tool, device, steps, folder = sys.argv[1:]
    step, wait = make(workload, device)
    for _ in range(_WARM_UP_STEPS):
        step()
    wait()
    end = begin(tool, Path(folder))
    times = []
    each = max(1, int(steps) // _BLOCKS)
    for _ in range(_BLOCKS):
        begun = time.perf_counter()
        for _ in range(each):
            step()
        wait()
        times.append((time.perf_counter() - begun) / each * 1e3)
    values = {"step_ms": times, "device_bytes": device_bytes(), "work_ended": time.time()}
    end()
    print(json.dumps(values), flush=True)


if __name__ == "__main__":
    main()
