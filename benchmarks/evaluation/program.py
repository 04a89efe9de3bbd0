"""Run one workload of the evaluation: some steps, each timed; with `--profiler`, under another profiler.

python benchmarks/evaluation/program.py nanogpt torch --size tiny --steps 30
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

WORKLOADS = (
    "dlrm",
    "unet",
    "resnet",
    "vit",
    "conformer",
    "gnn",
    "transformer_big",
    "llama",
    "gemma",
    "nanogpt",
)
FRAMEWORKS = ("torch", "jax")


def make_step(workload: str, framework: str, size: str) -> Callable[[], object]:
    """Return the step of a workload; `float()` of its result waits for the device."""
    module = importlib.import_module(workload)
    if framework == "jax":
        return module.jax_step(module.SIZES[size])
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)  # threads that wait for each other measure what else runs
    # Not the default device, which adds a Python frame to each operator.
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        return module.torch_step(module.SIZES[size])


@contextlib.contextmanager
def torch_profiler(output: Path, times: dict[str, float], **options: bool) -> Iterator[None]:
    import torch

    with torch.profiler.profile(**options) as profiler:
        yield
    profiler.export_chrome_trace(str(output / "trace.json"))
    times["written"] = time.monotonic()
    profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=20)
    times["shown"] = time.monotonic()


@contextlib.contextmanager
def jax_profiler(output: Path, times: dict[str, float]) -> Iterator[None]:
    import jax

    with jax.profiler.trace(str(output)):
        yield
    times["written"] = time.monotonic()


@contextlib.contextmanager
def proton(output: Path, times: dict[str, float]) -> Iterator[None]:
    import triton.profiler

    triton.profiler.start(str(output / "proton"), context="python")
    yield
    triton.profiler.finalize()
    times["written"] = time.monotonic()


PROFILERS = {
    "none": lambda *_: contextlib.nullcontext(),
    "torch": torch_profiler,
    "torch-stack": lambda *where: torch_profiler(*where, with_stack=True),
    "jax": jax_profiler,
    "proton": proton,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("--size", choices=("tiny", "paper"), default="tiny")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--profiler", choices=PROFILERS, default="none")
    parser.add_argument("--output", type=Path, help="existing folder for the result and the times")
    options = parser.parse_args()
    step = make_step(options.workload, options.framework, options.size)
    steps_ns: list[int] = []
    cpu_ns = 0.0
    times: dict[str, float] = {}
    with PROFILERS[options.profiler](options.output, times):
        for index in range(options.steps):
            if index == options.steps // 2:
                cpu_ns = time.process_time_ns()
            begun = time.perf_counter_ns()
            value = float(step())
            steps_ns.append(time.perf_counter_ns() - begun)
        times["end"] = time.monotonic()
        cpu_ns = (time.process_time_ns() - cpu_ns) / (options.steps - options.steps // 2)
    if options.output:
        found = {"steps_ns": steps_ns, "cpu_ns": cpu_ns, "times": times, "value": value}
        (options.output / "times.json").write_text(json.dumps(found), encoding="utf-8")
    else:
        print(f"{sorted(steps_ns)[len(steps_ns) // 2] / 1e6:.2f} ms a step, last value {value:.4g}")


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    main()
