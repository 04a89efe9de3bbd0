"""Training steps of libraries on top of jax, installed by `make ecosystem`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deepcontext.profiler.format.frame import Phase
from deepcontext.profiler.summaries.jax import programs as jax_programs

if TYPE_CHECKING:
    from tests.integration.jax.conftest import Recording, RunScript

pytestmark = pytest.mark.ecosystem
STEPS = 12


def _check(recording: Recording, function: str) -> None:
    assert recording.launches(function) == STEPS
    # the rest of the program initialises the model, in the library's own lines
    accounting = jax_programs.device_accounting(recording.profile)
    assert accounting.on_user_line >= 0.95 * recording.device_ns(function)
    assert {Phase.FORWARD, Phase.BACKWARD} <= recording.phases(function)
    assert recording.detail("executions_without_launch") == 0


def test_optax(run_script: RunScript) -> None:
    pytest.importorskip("optax", reason="make ecosystem installs it")
    recording = run_script(
        f"""
        import jax, jax.numpy as jnp, optax

        def loss(params, x):
            return jnp.mean(jnp.tanh(x @ params["w"] + params["b"]) ** 2)

        optimizer = optax.adamw(1e-3)

        @jax.jit
        def train_step(params, state, x):
            gradients = jax.grad(loss)(params, x)
            updates, state = optimizer.update(gradients, state, params)
            return optax.apply_updates(params, updates), state

        params = {{"w": jnp.ones((256, 256)) * 1e-2, "b": jnp.zeros(256)}}
        state = optimizer.init(params)
        for _ in range({STEPS}):
            params, state = train_step(params, state, jnp.ones((128, 256)))
            jax.block_until_ready(params)
        """,
        "--jax-exact",
    )
    _check(recording, "train_step")


def test_flax_nnx(run_script: RunScript) -> None:
    pytest.importorskip("flax", reason="make ecosystem installs it")
    recording = run_script(
        f"""
        import jax, jax.numpy as jnp
        from flax import nnx

        class Model(nnx.Module):
            def __init__(self, rngs):
                self.up = nnx.Linear(128, 512, rngs=rngs)
                self.down = nnx.Linear(512, 128, rngs=rngs)

            def __call__(self, x):
                return self.down(jax.nn.relu(self.up(x)))

        @nnx.jit
        def train_step(model, x):
            def loss(model):
                return jnp.mean((model(x) - x) ** 2)

            value, gradients = nnx.value_and_grad(loss)(model)
            state = nnx.state(model, nnx.Param)
            nnx.update(model, jax.tree.map(lambda p, g: p - 0.1 * g, state, gradients))
            return value

        model = Model(nnx.Rngs(0))
        for _ in range({STEPS}):
            train_step(model, jnp.ones((64, 128))).block_until_ready()
        """,
        "--jax-exact",
    )
    _check(recording, "train_step")


def test_equinox(run_script: RunScript) -> None:
    pytest.importorskip("equinox", reason="make ecosystem installs it")
    recording = run_script(
        f"""
        import equinox as eqx, jax, jax.numpy as jnp

        model = eqx.nn.MLP(64, 64, 256, 2, key=jax.random.key(0))

        @eqx.filter_jit
        def train_step(model, x):
            def loss(model):
                return jnp.mean((jax.vmap(model)(x) - x) ** 2)

            gradients = eqx.filter_grad(loss)(model)
            return eqx.apply_updates(model, jax.tree.map(lambda g: -0.1 * g, gradients))

        for _ in range({STEPS}):
            model = train_step(model, jnp.ones((64, 64)))
            jax.block_until_ready(eqx.filter(model, eqx.is_array))
        """,
        "--jax-exact",
    )
    _check(recording, "train_step")
