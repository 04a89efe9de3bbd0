"""Small traces of torch.profiler, made up event by event."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    Event = dict[str, Any]

PID, MAIN, ENGINE = 100, 100, 101


def span(
    category: str, name: str, begin: float, duration: float, *, tid: int = MAIN, **args: object
) -> Event:
    """Return an event of the host."""
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": PID,
        "tid": tid,
        "ts": begin,
        "dur": duration,
        "args": _named(args),
    }


def _named(args: dict[str, object]) -> dict[str, object]:
    """Return arguments under the names of a trace, which have spaces: "External id"."""
    return {
        key.replace("_", " ") if key.endswith(("_id", "_number")) else key: value
        for key, value in args.items()
    }


def op(name: str, begin: float, duration: float, *, tid: int = MAIN, **args: object) -> Event:
    return span("cpu_op", name, begin, duration, tid=tid, **args)


def python(name: str, begin: float, duration: float, *, tid: int = MAIN) -> Event:
    return span("python_function", name, begin, duration, tid=tid)


def launch(
    begin: float, correlation: int, *, name: str = "cudaLaunchKernel", duration: float = 5
) -> Event:
    return span("cuda_runtime", name, begin, duration, correlation=correlation)


def kernel(
    name: str,
    begin: float,
    duration: float,
    correlation: int,
    *,
    category: str = "kernel",
    **args: object,
) -> Event:
    event = span(category, name, begin, duration, correlation=correlation, device=0, stream=7)
    return event | {"pid": 0, "tid": 7, "args": event["args"] | _named(args)}


def step(number: int, begin: float, duration: float) -> Event:
    return span("user_annotation", f"ProfilerStep#{number}", begin, duration)


def write(path: Path, events: list[Event], **facts: object) -> Path:
    """Write a trace, compressed where the name says so."""
    text = json.dumps({"schemaVersion": 1, **facts, "traceEvents": events}, indent=1).encode()
    path.write_bytes(gzip.compress(text) if path.name.endswith(".gz") else text)
    return path


def training(steps: int = 3) -> list[Event]:
    """Return a training loop on an NVIDIA GPU: forward, backward on the engine's thread, optimizer."""
    events: list[Event] = [python("train.py(10): <module>", 0, 1000 * steps + 10)]
    for n in range(steps):
        at = 1000.0 * n + 5
        number = 100 + n
        first = 10 * n + 1
        events += [
            step(n + 5, at, 990),
            python("nn.Module: Linear_0", at + 10, 200),
            python("torch/nn/modules/module.py(1700): _call_impl", at + 11, 198),
            python("torch/nn/modules/linear.py(120): forward", at + 12, 196),
            op("aten::linear", at + 20, 100, Sequence_number=number),
            op("aten::addmm", at + 30, 80, Sequence_number=number, External_id=first),
            launch(at + 50, first),
            kernel("gemm", at + 100, 300, first, grid=[4, 2, 1], block=[128, 1, 1]),
            python("torch/autograd/graph.py(800): _engine_run_backward", at + 300, 400),
            python(
                "<built-in method run_backward of torch._C._EngineBase object at 0x7f00>",
                at + 310,
                380,
            ),
            op(
                "autograd::engine::evaluate_function: AddmmBackward0",
                at + 320,
                150,
                tid=ENGINE,
                **{"Sequence number": number, "Fwd thread id": 1},
            ),
            op(
                "AddmmBackward0",
                at + 330,
                130,
                tid=ENGINE,
                **{"Sequence number": number, "Fwd thread id": 1},
            ),
            op("aten::mm", at + 340, 100, tid=ENGINE),
            launch(at + 350, first + 1) | {"tid": ENGINE},
            kernel("gemm_backward", at + 420, 200, first + 1),
            op(
                "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
                at + 500,
                50,
                tid=ENGINE,
            ),
            span("user_annotation", "Optimizer.step#SGD.step", at + 750, 100),
            op("aten::add_", at + 760, 50),
            launch(at + 770, first + 2),
            kernel("add", at + 800, 10, first + 2),
            launch(at + 900, first + 3, name="cudaDeviceSynchronize", duration=60),
        ]
    return events


NVIDIA = {
    "deviceProperties": [
        {"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 8 << 30, "numSms": 132}
    ],
    "cupti_version": 22,
    "distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 4},
}
