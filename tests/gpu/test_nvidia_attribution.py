"""Kernels, copies and memsets of every way to launch them are under the code that did."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from harness import assert_all_attributed

if TYPE_CHECKING:
    from harness import Bench

pytestmark = [pytest.mark.gpu, pytest.mark.needs("torch")]

EAGER = """
import torch
a = torch.randn(1024, 1024, device="cuda")
def multiply():
    return a @ a
def activate(x):
    return torch.relu(x)
for _ in range(200):
    activate(multiply())
torch.cuda.synchronize()
"""


def test_eager_kernels(bench: Bench) -> None:
    outcome = bench.run(EAGER)
    unmatched = outcome.counters["gpu_records_unmatched"]
    bench.row("torch eager: records without a call path", str(unmatched), "0")
    assert_all_attributed(outcome, 400)
    assert outcome.status == "ran", outcome.reason
    assert sum(outcome.under("activate").values()) == 200
    assert sum(outcome.under("multiply").values()) >= 200
    operators = {name for path in outcome.kernels() for name in path}
    assert {"aten::mm", "aten::relu"} <= operators


def test_backward_kernels_are_under_their_forward_line(bench: Bench) -> None:
    outcome = bench.run(
        """
        import torch
        layer = torch.nn.Linear(512, 512, device="cuda")
        x = torch.randn(64, 512, device="cuda")
        def forward():
            return layer(x).sum()
        for _ in range(50):
            forward().backward()
        torch.cuda.synchronize()
        """
    )
    assert_all_attributed(outcome, 200)
    backward = {
        path
        for path in outcome.kernels()
        if any(name == "AddmmBackward0" for name in path) and "forward" in path
    }
    assert backward


def test_copies_and_memsets(bench: Bench) -> None:
    outcome = bench.run(
        """
        import torch
        host = torch.ones(1 << 20, pin_memory=True)
        torch.cuda.synchronize()
        def upload():
            return host.to("cuda", non_blocking=True)
        def download(x):
            return x.cpu()
        def clear(x):
            x.zero_()
        for _ in range(20):
            x = upload()
            clear(x)
            download(x)
        """
    )
    moved = [outcome.total("copy_bytes", below=name) for name in ("upload", "download")]
    bench.row("copies: bytes up and down", f"{moved[0]}, {moved[1]}", f"{20 * (4 << 20)} each")
    assert_all_attributed(outcome, 60)
    assert outcome.under("upload") == {"Memcpy HtoD": 20}
    assert outcome.under("download") == {"Memcpy DtoH (pageable)": 20}
    assert sum(outcome.under("clear").values()) == 20  # a memset or a kernel, as torch decides
    assert moved == [20 * (4 << 20)] * 2


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_compiled_kernels(bench: Bench, mode: str) -> None:
    outcome = bench.run(
        f"""
        import torch
        @torch.compile(mode={mode!r})
        def fused(x):
            return torch.relu(x * 2 + 1).sum()
        x = torch.randn(1 << 20, device="cuda")
        def call():
            return fused(x).item()
        for _ in range(60):
            call()
        """
    )
    bench.row(
        f"torch.compile ({mode}): records without a call path",
        str(outcome.counters["gpu_records_unmatched"]),
        "0",
    )
    assert outcome.counters["gpu_records_dropped"] == 0
    assert outcome.counters["gpu_errors"] == 0
    assert outcome.counters["gpu_records_unmatched"] == 0
    assert sum(outcome.under("call").values()) >= 60


def test_captured_graphs(bench: Bench) -> None:
    """Counts are nodes times replays, under the replay and the code that captured."""
    replays = 30
    outcome = bench.run(
        f"""
        import torch
        x = torch.randn(256, 256, device="cuda")
        def body():
            return torch.relu(x + 1) * 2
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            body()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        def capture():
            with torch.cuda.graph(graph):
                body()
        def replay():
            graph.replay()
        capture()
        for _ in range({replays}):
            replay()
        torch.cuda.synchronize()
        """
    )
    of_graphs = f"{outcome.figure('graph_captured')} of {3 * replays}"
    bench.row("CUDA graph: kernels under capture and replay", of_graphs, "all")
    assert_all_attributed(outcome, 3 * replays)
    assert outcome.figure("graph_captured") == 3 * replays
    assert outcome.figure("graph_launched") == 0
    replayed = {
        path: count for path, (count, _) in outcome.kernels().items() if "graph replay" in path
    }
    assert sum(replayed.values()) == 3 * replays
    assert set(replayed.values()) == {replays}
    for path in replayed:
        after = path[path.index("graph replay") :]
        assert "replay" in path[: path.index("graph replay")]
        assert "capture" in after
        assert "body" in after


def test_copies_and_memsets_in_a_graph(bench: Bench) -> None:
    """Their records name the node, too."""
    replays = 30
    outcome = bench.run(
        f"""
        import torch
        x, y, z = (torch.ones(1 << 20, device="cuda") for _ in range(3))
        graph = torch.cuda.CUDAGraph()
        def capture():
            with torch.cuda.graph(graph):
                y.copy_(x)
                z.zero_()
        capture()
        for _ in range({replays}):
            graph.replay()
        torch.cuda.synchronize()
        """
    )
    names = sorted({path[-1] for path in outcome.kernels() if "graph replay" in path})
    bench.row("CUDA graph: a copy and a memset", ", ".join(names), "under capture and replay")
    assert_all_attributed(outcome, 2 * replays)
    assert outcome.figure("graph_launched") == 0
    assert outcome.figure("graph_captured") == 2 * replays


def test_idle_time_is_charged_to_the_code_that_starves_the_device(bench: Bench) -> None:
    outcome = bench.run(
        """
        import torch
        x = torch.randn(512, 512, device="cuda")
        def starve():
            time.sleep(0.02)
        def feed():
            return x @ x
        for _ in range(20):
            feed()
            starve()
        torch.cuda.synchronize()
        """
    )
    # The host was in no call of the device while it slept: the next launch, late, is charged.
    whole = outcome.total("gpu_idle_ns", below="feed")
    bench.row("idle while the host slept 0.38 s", f"{whole / 1e9:.3f} s", ">= 0.342 s")
    assert whole >= 19 * 20_000_000 * 0.9


def test_data_loader_workers(bench: Bench) -> None:
    """Forked workers neither record nor hang; the parent goes on recording."""
    outcome = bench.run(
        """
        import torch
        from torch.utils.data import DataLoader, TensorDataset
        data = TensorDataset(torch.randn(512, 64))
        model = torch.nn.Linear(64, 64, device="cuda")
        def train(batch):
            return model(batch.cuda()).sum().backward()
        for _ in range(3):
            for (batch,) in DataLoader(data, batch_size=32, num_workers=2):
                train(batch)
        torch.cuda.synchronize()
        """
    )
    bench.row("DataLoader with 2 forked workers: uploads", str(outcome.under("train")), "48")
    assert_all_attributed(outcome, 48 * 3)
    uploads = {name: n for name, n in outcome.under("train").items() if "Memcpy HtoD" in name}
    assert sum(uploads.values()) == 48


def test_a_child_forked_before_the_device_is_used_may_use_it(bench: Bench) -> None:
    """CUPTI starts inside the program's own initialisation of CUDA, so that a fork before is safe."""
    outcome = bench.run(
        """
        import os, signal, torch
        child = os.fork()
        if child == 0:
            signal.alarm(120)
            total = 0
            try:
                total = torch.ones(4, device="cuda").sum().item()
            finally:
                os._exit(total != 4)
        _, status = os.waitpid(child, 0)
        def use():
            return torch.ones(8, device="cuda").sum().item()
        report(child=status, total=use())
        """
    )
    bench.row("fork before the first use of CUDA: status of the child", str(outcome.values), "0")
    assert outcome.values == {"child": 0, "total": 8}
    assert sum(outcome.under("use").values()) >= 2
