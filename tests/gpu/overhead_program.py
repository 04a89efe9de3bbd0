"""Run a step of a workload many times, plain or below another tool, and print what the steps took.

    overhead_program.py WORKLOAD TOOL DEVICE STEPS FOLDER
    overhead_program.py serve torch|jax

DEVICE is "cuda", or "cpu" for a small model. TOOL is "none", "deepcontext" (a session from before the first
use of the device), "torch", "torch-stack", "proton" or "jax"; what it writes lies in FOLDER. The last line
printed is JSON: ms of a step in each of ten blocks, the bytes of the device in use, and when the work ended.

`serve` imports the framework once, and makes each measurement in a fork: for a line with the words above it
answers with a line of JSON. Imports take longer than most measurements, and time on a GPU is short.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_BLOCKS = 10
_WARM_UP_STEPS = 10
_MOST_S = 300


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
    if tool == "deepcontext":
        import deepcontext

        deepcontext.start(str(folder / "run.dcprof"))
        return lambda: deepcontext.stop()
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
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        run(sys.argv[1:])


def serve(framework: str) -> None:
    """Answer each line of standard input with what a fork did: its status and its most memory."""
    # Asking the runtime for devices would initialise CUDA here, and forks could not use it.
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    importlib.import_module("workload_jax" if framework == "jax" else "workloads")
    if framework == "torch":
        importlib.import_module("torch._dynamo")  # which optimizers import
    for line in sys.stdin:
        words = json.loads(line)
        child = os.fork()
        if child == 0:
            os._exit(_forked(words))
        _, status, usage = os.wait4(child, 0)
        answer = {
            "code": os.waitstatus_to_exitcode(status),
            "host_bytes": usage.ru_maxrss << 10,
            "ended": time.time(),
        }
        print(json.dumps(answer), flush=True)


def _forked(words: list[str]) -> int:
    """Measure with output in the folder's parent; return the exit status."""
    folder = Path(words[-1]).parent
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT, 0o600), number)
    signal.alarm(_MOST_S)
    try:
        run(words)
    except BaseException:  # noqa: BLE001  the fork must not go on as the server
        traceback.print_exc()
        return 1
    return 0


def run(words: list[str]) -> None:
    """Measure, and print."""
    workload, tool, device, steps, folder = words
    is_early = tool == "deepcontext"
    end = begin(tool, Path(folder)) if is_early else lambda: None
    step, wait = make(workload, device)
    for _ in range(_WARM_UP_STEPS):
        step()
    wait()
    if not is_early:
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
