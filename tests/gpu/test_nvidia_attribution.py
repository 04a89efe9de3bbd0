"""Kernels, copies and memsets of every way to launch them are under the code that did."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from harness import assert_all_attributed

from deepcontext.profiler.format.frame import FrameKind

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
    assert_all_attributed(outcome, 400)
    assert outcome.status == "ran", outcome.reason
    assert sum(outcome.under("activate").values()) == 200
    assert sum(outcome.under("multiply").values()) >= 200
    operators = {name for path in outcome.kernels() for name in path}
    assert {"aten::mm", "aten::relu"} <= operators
    bench.row("torch eager: records without a call path", "0", "0")


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
    assert_all_attributed(outcome, 60)
    assert outcome.under("upload") == {"Memcpy HtoD": 20}
    assert outcome.under("download") == {"Memcpy DtoH": 20}
    assert sum(outcome.under("clear").values()) == 20  # a memset or a kernel, as torch decides
    assert outcome.total("copy_bytes", below="upload") == 20 * (4 << 20)
    assert outcome.total("copy_bytes", below="download") == 20 * (4 << 20)
    bench.row("copies: bytes by direction", "as requested", "exact")


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
    assert outcome.counters["gpu_records_dropped"] == 0
    assert outcome.counters["gpu_errors"] == 0
    assert outcome.counters["gpu_records_unmatched"] == 0
    assert sum(outcome.under("call").values()) >= 60
    bench.row(
        f"torch.compile ({mode}): records without a call path",
        str(outcome.counters["gpu_records_unmatched"]),
        "0",
    )


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
    bench.row(
        "CUDA graph: kernels under capture and replay", f"{3 * replays} of {3 * replays}", "all"
    )


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
    assert_all_attributed(outcome, 2 * replays)
    assert outcome.figure("graph_launched") == 0
    assert outcome.figure("graph_captured") == 2 * replays
    names = sorted({path[-1] for path in outcome.kernels() if "graph replay" in path})
    bench.row("CUDA graph: a copy and a memset", ", ".join(names), "under capture and replay")


@pytest.mark.needs("triton")
def test_triton_kernels_launched_directly(bench: Bench) -> None:
    outcome = bench.run(
        """
        import torch, triton
        import triton.language as tl
        @triton.jit
        def add_one(pointer, count, BLOCK: tl.constexpr):
            at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            mask = at < count
            tl.store(pointer + at, tl.load(pointer + at, mask=mask) + 1, mask=mask)
        x = torch.zeros(1 << 16, device="cuda")
        def launch():
            add_one[(triton.cdiv(x.numel(), 1024),)](x, x.numel(), BLOCK=1024)
        for _ in range(40):
            launch()
        assert x[0].item() == 40
        """
    )
    assert_all_attributed(outcome, 40)
    assert outcome.under("launch")["add_one"] == 40
    bench.row("Triton, launched directly: under its Python line", "40 of 40", "all")


@pytest.mark.needs("jax")
def test_jax_kernels(bench: Bench) -> None:
    outcome = bench.run(
        """
        import jax, jax.numpy as jnp
        @jax.jit
        def model(x):
            return jnp.tanh(x @ x).sum()
        x = jnp.ones((1024, 1024))
        def call():
            return model(x).block_until_ready()
        for _ in range(50):
            call()
        """,
        environment={"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
    )
    counters = outcome.counters
    assert counters["gpu_errors"] == 0
    assert counters["gpu_records_dropped"] == 0
    assert counters["gpu_records_received"] >= 100
    share = counters["gpu_records_matched"] / counters["gpu_records_received"]
    assert share == 1
    # XLA may launch from threads of its own: those stand below the thread.
    under_call = sum(outcome.under("call").values())
    bench.row("JAX: below the Python line that called", str(under_call), "for information")
    under_hlo = outcome.launches_below(FrameKind.HLO)
    bench.row("JAX: records with a call path", f"{share:.1%}", "100 %")
    bench.row("JAX: below an HLO instruction", str(under_hlo), ">= 100")
    assert under_hlo >= 100


@pytest.mark.needs("jax")
def test_jax_command_buffers(bench: Bench) -> None:
    """XLA runs long sequences as CUDA graphs of its own making."""
    outcome = bench.run(
        """
        import jax, jax.numpy as jnp
        @jax.jit
        def model(x):
            for _ in range(12):
                x = jnp.tanh(x @ x) / 32
            return x.sum()
        x = jnp.ones((256, 256))
        for _ in range(50):
            model(x).block_until_ready()
        """,
        environment={"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
    )
    assert outcome.counters["gpu_errors"] == 0
    assert outcome.counters["gpu_records_unmatched"] == 0
    assert outcome.figure("graph_launched") == 0
    received, of_graphs = outcome.figure("received"), outcome.figure("graph_captured")
    bench.row("JAX: records of command buffers", f"{of_graphs} of {received}", "for information")
    under_hlo = outcome.launches_below(FrameKind.HLO)
    bench.row("JAX, command buffers: below an HLO instruction", str(under_hlo), ">= 600")
    assert under_hlo >= 600


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
    assert whole >= 19 * 20_000_000 * 0.9
    bench.row("idle while the host slept 0.38 s", f"{whole / 1e9:.3f} s", ">= 0.342 s")


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
    assert_all_attributed(outcome, 48 * 3)
    assert outcome.under("train")["Memcpy HtoD"] == 48
    bench.row("DataLoader with 2 forked workers", "complete", "complete")


def test_a_child_forked_before_the_device_is_used_may_use_it(bench: Bench) -> None:
    """The collector begins when torch is loaded; that must not take CUDA from a later fork."""
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
    assert outcome.values == {"child": 0, "total": 8}
    assert sum(outcome.under("use").values()) >= 2
    bench.row("fork before the first use of CUDA: the child can use it", "yes", "yes")
