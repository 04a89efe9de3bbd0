"""A program that uses both frameworks has one profile with both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("torch")

if TYPE_CHECKING:
    from tests.integration.jax.conftest import RunScript


@pytest.mark.long
def test_one_tree_holds_torch_operators_and_jax_programs(run_script: RunScript) -> None:
    recording = run_script(
        """
        import jax, jax.numpy as jnp, numpy as np, torch

        @jax.jit
        def target(x):
            return jnp.sin(x @ x)

        def step(model, optimizer, x):
            wanted = torch.from_numpy(np.array(target(x)))
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(torch.ones(32, 32)), wanted).backward()
            optimizer.step()

        model = torch.nn.Linear(32, 32)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(10):
            step(model, optimizer, jnp.ones((32, 32)))
        """,
        "--jax-exact",
    )
    profile = recording.profile
    collectors = {c.name: c.status for c in profile.trust.collectors}
    assert (collectors["torch"], collectors["jax"]) == ("ran", "ran")
    assert recording.launches("target") == 10
    assert recording.device_ns("target") > 0
    step = profile.query().name("step").file("*program.py")
    assert profile.query().name("aten::addmm").under(step).count() > 0
    assert profile.query().name("AddmmBackward0").phase("backward").count() > 0
    assert profile.query().name("jit(target)").under(step).count() > 0
