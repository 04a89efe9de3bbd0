"""What draining and attributing one record of GPU work costs, compared with only stepping over it.

No GPU: the fake vendor libraries of `tests/fakes` deliver a million kernel records in buffers, and
the collector's own thread reads them. Bounds: at 20,000 call paths at most 3 times the bare walk with
CUPTI; with AMD's interfaces at most 1.5 times what CUPTI's records cost in the same run.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "fakes"))
import kit
from paired import Table, machine

from deepcontext import _native
from deepcontext.collectors.gpu.collection import GpuCollection, Interface
from deepcontext.profiler.recording.options import SessionOptions

RECORDS = 400_000
CONTEXTS = (200, 2_000, 20_000)
KERNELS = 200
ROUNDS = 5
PER_CALL = 4  # launches from one call path in a row
BOUND = 3.0
AGAINST_NVIDIA = 1.5


def launch_all(gpu: kit.FakeGpu, contexts: int) -> None:
    """Launch every record from one of `contexts` call paths, names as long as real ones."""
    template = "void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<float>, {}>(int)"
    names = [template.format(i) for i in range(KERNELS)]
    for call in range(RECORDS // PER_CALL):
        context = call % contexts
        token = _native.enter_scope(f"op{context}")
        for kernel in range(2):
            gpu.launch(names[(context * 7 + kernel) % KERNELS], us=1, count=PER_CALL // 2)
        _native.leave_scope(token)


def one_round(gpu: kit.FakeGpu, contexts: int) -> tuple[float, float]:
    """Return ns a record: walk, drain."""
    gpu.reset()
    files = gpu.environment()
    profiler, driver = (files[name] for name in gpu.vendor.variables)
    _native.begin(4_000_000)
    collection = GpuCollection(gpu.vendor.name)
    collection.begin(Interface(gpu.vendor.interface, profiler, driver), SessionOptions())
    launch_all(gpu, contexts)
    gpu.hold_buffers(holding=True)
    gpu.deliver()
    begun = time.process_time_ns()
    gpu.walk_held()
    walk = time.process_time_ns() - begun
    begun = time.process_time_ns()
    gpu.hold_buffers(holding=False)
    collection.flush()
    drain = time.process_time_ns() - begun
    collection.end()
    figures = _native.gpu_figures(gpu.vendor.interface)
    _native.end()
    if figures["matched"] != RECORDS:
        raise SystemExit(f"{figures['matched']} of {RECORDS} records were attributed: {figures}")
    return walk / RECORDS, drain / RECORDS


def table(folder: Path, vendors: tuple[kit.Vendor, ...], rounds: int = ROUNDS) -> Table:
    import os

    os.environ["DEEPCONTEXT_GPU_POOL_BYTES"] = str(1 << 30)
    gpus = [kit.FakeGpu(folder, vendor) for vendor in vendors]
    rows = []
    for contexts in CONTEXTS:
        # The vendors take turns, so that a busy machine affects all of them equally.
        turns = [[one_round(gpu, contexts) for gpu in gpus] for _ in range(rounds)]
        for place, vendor in enumerate(vendors):
            figures = [turn[place] for turn in turns]
            walk = statistics.median(walk for walk, _ in figures)
            drain = statistics.median(drain for _, drain in figures)
            best = min(drain / walk for walk, drain in figures)
            against = statistics.median(turn[place][1] / turn[0][1] for turn in turns)
            is_bound = contexts == CONTEXTS[-1]
            rows.append([
                vendor.interface,
                f"{contexts:,}",
                f"{walk:.0f}",
                f"{drain:.0f}",
                f"{drain / walk:.2f}",
                f"{best:.2f}",
                f"<= {BOUND:.1f}" if is_bound and place == 0 else "",
                f"{against:.2f}",
                f"<= {AGAINST_NVIDIA:.1f}" if place else "",
            ])
    return Table(
        "One GPU record: drain, attribute, aggregate (fake vendor libraries, no GPU)",
        [
            "interface",
            "call paths",
            "walk ns",
            "drain ns",
            "ratio",
            "best ratio",
            "bound",
            f"drain against {vendors[0].interface}",
            "bound",
        ],
        rows,
    )


def tables() -> list[Table]:
    with tempfile.TemporaryDirectory() as folder:
        return [table(kit.build(Path(folder)), kit.VENDORS)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(machine())
        print(table(kit.build(Path(folder)), kit.VENDORS, arguments.rounds).markdown())
