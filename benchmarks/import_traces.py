"""Time and memory to read a trace of torch.profiler, by size.

Beside `json.load`, which only decodes it, and Holistic Trace Analysis (`pip install HolisticTraceAnalysis`),
which makes a table of events.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paired import Table, machine

if TYPE_CHECKING:
    from collections.abc import Iterator

    Event = dict[str, Any]

# Of the content; the files are not compressed. Larger ones are named as arguments: 2,000 takes minutes.
SIZES_MB = (60, 250)
# `json.load` needs eight times the size, and HTA decodes with it.
LARGEST_FOR_OTHERS_MB = 500
PID, ENGINE = 100, 101
_READ = "from deepcontext.profiler.importing.opening import load; load(sys.argv[1])"
_JSON = "import json; json.load(open(sys.argv[1]))"
# Holistic Trace Analysis, to its table of events.
_HTA = "from hta.common.trace import parse_trace_file; parse_trace_file(sys.argv[1])"


def step(number: int) -> Iterator[Event]:
    """Yield the events of one step: 40 layers, with Python functions, launches, kernels and flows."""
    begin = number * 40_000.0
    yield _span("user_annotation", f"ProfilerStep#{number}", begin, 39_900)
    for layer in range(40):
        at, first = begin + 300 * layer + 10, (number * 40 + layer) * 2 + 1
        yield _span("python_function", f"nn.Module: Block_{layer}", at, 290)
        for depth in range(6):
            name = f"transformers/models/llama/modeling_llama.py({100 + depth}): forward"
            yield _span("python_function", name, at + 1 + depth, 280 - 2 * depth)
        yield _operator("aten::linear", at + 20, 200, first)
        yield _operator("aten::addmm", at + 30, 150, first)
        yield _span("cuda_runtime", "cudaLaunchKernel", at + 50, 5, correlation=first, cbid=211)
        yield _kernel(
            "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm>(Params)",
            at + 60,
            250,
            first,
        )
        for phase in ("s", "f"):
            flow = {"ph": phase, "id": first, "cat": "ac2g", "name": "ac2g", "pid": PID, "tid": PID}
            yield flow | {"ts": at + 50}
        back = begin + 20_000 + 400 * layer
        thread = {"Fwd thread id": 1}
        yield _operator("AddmmBackward0", back, 200, first, tid=ENGINE, **thread)
        yield _operator("aten::mm", back + 10, 150, first, tid=ENGINE)
        yield _span(
            "cuda_runtime", "cudaLaunchKernel", back + 20, 5, tid=ENGINE, correlation=first + 1
        )
        yield _kernel(
            "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_nt>(Params)",
            back + 60,
            300,
            first + 1,
        )


def _span(
    category: str, name: str, begin: float, duration: float, *, tid: int = PID, **args: object
) -> Event:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": PID,
        "tid": tid,
        "ts": begin,
        "dur": duration,
        "args": {**args, "Ev Idx": int(begin)},
    }


def _operator(
    name: str, begin: float, duration: float, number: int, *, tid: int = PID, **args: object
) -> Event:
    shapes = {
        "Input Dims": [[4096, 4096], [4096, 1024], []],
        "Input type": ["c10::BFloat16", "c10::BFloat16", "Scalar"],
    }
    known = {"External id": number, "Record function id": 0, "Sequence number": number, **shapes}
    return _span("cpu_op", name, begin, duration, tid=tid, **known, **args)


def _kernel(name: str, begin: float, duration: float, correlation: int) -> Event:
    shape = {
        "grid": [132, 4, 1],
        "block": [256, 1, 1],
        "registers per thread": 128,
        "shared memory": 49152,
    }
    event = _span(
        "kernel", name, begin, duration, correlation=correlation, device=0, stream=7, **shape
    )
    return event | {"pid": 0, "tid": 7}


def write(path: Path, size_bytes: int) -> int:
    """Write a trace as torch.profiler lays it out; return the number of events."""
    count = written = number = 0
    with path.open("w") as file:
        file.write('{"schemaVersion": 1, "cupti_version": 22, "traceEvents": [\n')
        while written < size_bytes:
            for event in step(number):
                text = json.dumps(event, indent=2)
                file.write(f"{',' if count else ''}{text}\n")
                written += len(text) + 2
                count += 1
            number += 1
        file.write("]}\n")
    return count


def run(code: str, path: Path) -> tuple[float, float]:
    """Return processor s and peak MiB of a new process, with the start of the interpreter."""
    used = "used = resource.getrusage(resource.RUSAGE_SELF)"
    child = f"import resource, sys; {code}; {used}; print(used.ru_utime + used.ru_stime, used.ru_maxrss)"
    done = subprocess.run(
        [sys.executable, "-c", child, str(path)], stdout=subprocess.PIPE, check=True
    )
    seconds, kib = done.stdout.split()[-2:]  # HTA prints, too
    return float(seconds), int(kib) / 1024


def table(sizes_mb: tuple[int, ...] = SIZES_MB) -> Table:
    """Return the table of all sizes."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        for size in sizes_mb:
            events = write(path, size * 10**6)
            megabytes = path.stat().st_size / 1e6
            elapsed, peak = run(_READ, path)
            row = [
                f"{megabytes:,.0f} MB",
                f"{events:,}",
                f"{elapsed:.1f} s",
                f"{megabytes / elapsed:.0f} MB/s",
                f"{peak:,.0f} MiB",
            ]
            for code, is_here in ((_JSON, True), (_HTA, importlib.util.find_spec("hta"))):
                if is_here and size <= LARGEST_FOR_OTHERS_MB:
                    elapsed, peak = run(code, path)
                    row += [f"{megabytes / elapsed:.0f} MB/s", f"{peak:,.0f} MiB"]
                else:
                    row += ["not run", ""]
            rows.append(row)
    return Table(
        "Reading a trace of torch.profiler",
        [
            "trace",
            "events",
            "processor time",
            "speed",
            "peak memory",
            "`json.load` alone",
            "its peak memory",
            "HTA",
            "its peak memory",
        ],
        rows,
        [
            "A made-up trace of a training loop with Python functions, 280 bytes an event; a process each, "
            "its processor time with the start of the interpreter. Design: 60 MB/s and 512 MiB for 2 GB; "
            f"memory grows with the number of events, which are sorted in memory. {machine()}."
        ],
    )


if __name__ == "__main__":
    print(table(tuple(map(int, sys.argv[1:])) or SIZES_MB).markdown())
