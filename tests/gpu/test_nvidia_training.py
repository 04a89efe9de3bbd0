"""What each profiler costs on steps of models; sessions of deepcontext write snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import overhead
import pytest

if TYPE_CHECKING:
    from harness import Bench

pytestmark = [pytest.mark.gpu, pytest.mark.takes(70)]

LIMIT_S = 40.0
STEPS = {"gpt2": 30, "resnet50": 50, "decode": 200, "decode_graphs": 200}


def measure(bench: Bench, workload: str, ways: tuple[str, ...]) -> None:
    steps = STEPS.get(workload, 100)
    found = overhead.in_turn(workload, ways, "cuda", steps, LIMIT_S)
    for check, figures in overhead.rows(workload, found):
        bench.row(check, figures, "for information")
    for way in ("plain", "deepcontext"):  # other tools have their own faults
        failures = [each.failure for each in found[way] if each.failure]
        assert not failures, failures


@pytest.mark.needs("torch")
@pytest.mark.parametrize("workload", ["gpt2", "decode", "decode_graphs", "dlrm", "resnet50"])
def test_steps_of_torch(bench: Bench, workload: str) -> None:
    measure(bench, workload, overhead.TORCH_WAYS)


@pytest.mark.needs("jax")
def test_a_step_of_jax(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    measure(bench, "jax_transformer", overhead.JAX_WAYS)
