"""AMD: what a fake cannot show. No hardware has run it yet; see docs/reference/amd.md."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from harness import assert_all_attributed

if TYPE_CHECKING:
    from harness import Bench

pytestmark = [pytest.mark.gpu, pytest.mark.needs("torch")]

EAGER = """
import torch, time
a = torch.randn(1024, 1024, device="cuda")
def multiply():
    return a @ a
def activate(x):
    return torch.relu(x)
for _ in range(20):
    activate(multiply())
torch.cuda.synchronize()
begun = time.perf_counter()
for _ in range(2000):
    activate(a)
torch.cuda.synchronize()
report(us=(time.perf_counter() - begun) / 2000 * 1e6)
"""


def test_registration_in_time_and_eager_kernels(bench: Bench) -> None:
    outcome = bench.run(EAGER)
    bench.row("interface", f"{outcome.details['interface']}, version {outcome.details['version']}")
    bench.row("status", f"{outcome.status} {outcome.reason}".strip(), "ran")
    bench.row("launches, records", f"{outcome.figure('launches')}, {outcome.figure('received')}")
    assert_all_attributed(outcome, 4040)
    assert sum(outcome.under("activate").values()) == 2020
    assert {"aten::mm", "aten::relu"} <= {name for path in outcome.kernels() for name in path}


def test_device_time_agrees_with_the_wall(bench: Bench) -> None:
    outcome = bench.run(
        """
        import torch, time
        a = torch.randn(8192, 8192, device="cuda")
        a @ a
        torch.cuda.synchronize()
        begun = time.perf_counter()
        def busy():
            for _ in range(20):
                a @ a
        busy()
        torch.cuda.synchronize()
        report(ns=(time.perf_counter() - begun) * 1e9)
        """
    )
    on_device = sum(ns for path, (_, ns) in outcome.kernels().items() if "busy" in path)
    share = on_device / outcome.values["ns"]
    bench.row("device time against the wall clock, GPU kept busy", f"{share:.3f}", "0.9 to 1.01")
    assert 0.9 <= share <= 1.01


def test_copies(bench: Bench) -> None:
    outcome = bench.run(
        """
        import torch
        host = torch.ones(1 << 20, pin_memory=True)
        def upload():
            return host.to("cuda", non_blocking=True)
        def download(x):
            return x.cpu()
        for _ in range(20):
            download(upload())
        """
    )
    assert outcome.profile is not None
    size = int(outcome.profile.metrics["copy_bytes"].total.sum())
    bench.row("bytes copied", f"{size}", f">= {40 * (4 << 20)}")
    bench.row("copies by name", f"{outcome.under('upload')} {outcome.under('download')}")
    assert outcome.under("upload") == {"Memcpy HtoD": 20}
    assert outcome.under("download") == {"Memcpy DtoH": 20}


def test_graphs(bench: Bench) -> None:
    outcome = bench.run(
        """
        import torch
        a = torch.randn(256, 256, device="cuda")
        def step():
            return torch.relu(a @ a)
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        def capture():
            with torch.cuda.graph(graph):
                step()
        capture()
        for _ in range(10):
            graph.replay()
        torch.cuda.synchronize()
        """
    )
    figures = ("graph_captured", "graph_launched", "graphs_out_of_order")
    bench.row("graph kernels: " + ", ".join(figures), f"{[outcome.figure(f) for f in figures]}")
    assert outcome.counters["gpu_records_unmatched"] == 0
    if outcome.details["interface"] == "rocprofiler":
        assert outcome.figure("graph_captured") >= 20
        assert outcome.figure("graphs_out_of_order") == 0


def test_devices_are_numbered_as_hip_does(bench: Bench) -> None:
    source = """
        import torch
        last = torch.cuda.device_count() - 1
        torch.ones(1 << 20, device=f"cuda:{last}").sum().item()
        report(last=last)
        """
    gpus = int(bench.run(source).values["last"]) + 1
    for visible in ("", "0", "1,0")[: 3 if gpus > 1 else 2]:
        environment = {"HIP_VISIBLE_DEVICES": visible} if visible else {}
        outcome = bench.run(source, environment=environment)
        assert outcome.profile is not None
        section = json.loads(outcome.profile.sections["gpu_amd"])
        devices = [device["device"] for device in section["devices"]]
        bench.row(f"device used, HIP_VISIBLE_DEVICES='{visible}'", f"{devices}")
        assert devices == [int(outcome.values["last"])]


def test_what_a_launch_costs(bench: Bench) -> None:
    ratios = []
    for _ in range(3):
        plain = bench.run(EAGER, is_profiled=False).values["us"]
        ratios.append(bench.run(EAGER).values["us"] / plain)
    bench.row("eager launch, profiled against plain", " ".join(f"{r:.2f}" for r in ratios))
