"""Packages that import PyTorch or JAX, each imported first: the profile has the operators."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

pytestmark = [pytest.mark.ecosystem, pytest.mark.timeout(600)]

# Some ask for the framework's spec first, some load it lazily, some put import hooks in its way.
TORCH = [
    "transformers",
    "accelerate",
    "lightning",
    "timm",
    "diffusers",
    "datasets",
    "torchmetrics",
    "sentence_transformers",
    "peft",
    "torch_geometric",
    "gpytorch",
    "captum",
    "skorch",
    "einops",
    "tensordict",
    "ignite",
    "torchdiffeq",
]
JAX = ["flax", "optax", "equinox", "haiku", "numpyro", "jaxtyping", "einops"]
USE_TORCH = """
import torch
print(torch.neg(torch.ones(3)).tolist())
"""
USE_JAX = """
import jax, jax.numpy as jnp
print(jax.jit(jnp.tanh)(jnp.zeros(3)).tolist())
"""


def _needs(package: str) -> None:
    if package == "timm":
        pytest.importorskip(
            "torchvision", reason="timm needs torchvision, which needs its own torch"
        )
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed: make ecosystem does")


@pytest.mark.parametrize("package", TORCH)
def test_torch_after_a_package_that_may_load_it(program: Any, package: str) -> None:
    _needs(package)
    printed, profile = program.profile(f"import {package}\n{USE_TORCH}")
    assert printed.endswith("[-1.0, -1.0, -1.0]\n")
    assert profile.query().kind("operator").name("aten::neg").count() == 1
    (collector,) = [each for each in profile.trust.collectors if each.name == "torch"]
    assert collector.status == "ran", collector.reason


@pytest.mark.parametrize("package", JAX)
def test_jax_after_a_package_that_may_load_it(program: Any, package: str) -> None:
    _needs(package)
    printed, profile = program.profile(f"import {package}\n{USE_JAX}", JAX_PLATFORMS="cpu")
    assert printed.endswith("[0.0, 0.0, 0.0]\n")
    assert profile.query().kind("operator").name("jit(tanh)").total("program_launch_count") == 1
