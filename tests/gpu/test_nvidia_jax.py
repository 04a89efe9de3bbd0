"""JAX and Triton: kernels under the operation and the line that launched them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from harness import assert_all_attributed
from judging import share_on_lines

from deepcontext.profiler.format.frame import FrameKind

if TYPE_CHECKING:
    from harness import Bench

pytestmark = pytest.mark.gpu


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
    found = outcome.under("launch")
    bench.row("Triton, launched directly: under its Python line", str(found), "40 of add_one")
    assert_all_attributed(outcome, 40)
    assert found["add_one"] == 40


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
    share = counters["gpu_records_matched"] / max(1, counters["gpu_records_received"])
    # XLA may launch from threads of its own: those stand below the thread.
    bench.row(
        "JAX: below the Python line that called", str(outcome.under("call")), "for information"
    )
    under_hlo = outcome.launches_below(FrameKind.HLO)
    bench.row("JAX: records with a call path", f"{share:.1%}", "100 %")
    bench.row("JAX: below an HLO instruction", str(under_hlo), ">= 100")
    assert counters["gpu_errors"] == 0
    assert counters["gpu_records_dropped"] == 0
    assert counters["gpu_records_received"] >= 100
    assert share == 1
    assert under_hlo >= 100


@pytest.mark.needs("jax")
def test_a_training_step_of_jax_is_below_operations_and_lines(bench: Bench) -> None:
    outcome = bench.run(
        """
        import jax, jax.numpy as jnp
        def block(weights, x):
            query, key, value = jnp.split(x @ weights["qkv"], 3, axis=-1)
            scores = jax.nn.softmax(query @ key.swapaxes(-1, -2) / 28)
            x = x + scores @ value
            return x + jax.nn.gelu(x @ weights["up"]) @ weights["down"]
        def loss(model, x):
            for weights in model:
                x = block(weights, x)
            return jnp.mean(x ** 2)
        @jax.jit
        def train(model, x):
            gradients = jax.grad(loss)(model, x)
            return jax.tree.map(lambda w, g: w - 1e-3 * g, model, gradients)
        sizes = {"qkv": (768, 2304), "up": (768, 3072), "down": (3072, 768)}
        model = [{name: jnp.full(size, 0.001) for name, size in sizes.items()} for _ in range(6)]
        x = jnp.ones((8, 512, 768))
        for _ in range(50):
            model = jax.block_until_ready(train(model, x))
        """,
        environment={"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
    )
    assert outcome.profile is not None
    # While it compiles, XLA tries kernels on threads of its own, which no line has asked for.
    share = share_on_lines(outcome.profile, "program.py", kind=FrameKind.HLO, operator="jit(train)")
    bench.row("JAX step: time below an HLO instruction and a line", f"{share:.2%}", "97 %")
    assert outcome.figure("graph_launched") == 0
    assert outcome.counters["gpu_records_unmatched"] == 0
    assert share >= 0.97


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
    received, of_graphs = outcome.figure("received"), outcome.figure("graph_captured")
    bench.row("JAX: records of command buffers", f"{of_graphs} of {received}", "for information")
    under_hlo = outcome.launches_below(FrameKind.HLO)
    bench.row("JAX, command buffers: below an HLO instruction", str(under_hlo), ">= 600")
    assert outcome.counters["gpu_errors"] == 0
    assert outcome.counters["gpu_records_unmatched"] == 0
    assert outcome.figure("graph_launched") == 0
    assert under_hlo >= 600
