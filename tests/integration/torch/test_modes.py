"""Modes such as a default device put a Python function of PyTorch between each line and its operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.analyzers import run_analyzers

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.torch.conftest import Recording

torch = pytest.importorskip("torch")


def pointwise(x: Any) -> Any:
    inner = torch.add(x, torch.mul(torch.mul(x, x), torch.mul(x, 0.044715)))
    return torch.mul(torch.mul(x, 0.5), torch.add(torch.tanh(inner), 1.0))


@pytest.mark.long
def test_the_advice_is_for_the_function_that_calls_the_operators(
    record: Callable[..., Recording],
) -> None:
    def run() -> None:
        x = torch.ones(256, 256)
        with torch.device("cpu"):
            for _ in range(200):
                pointwise(x)

    profile = record(run).profile
    (found,) = [each for each in run_analyzers(profile) if each.id == "kernel_fusion"]
    assert "_device.py" not in found.title
    assert "@torch.compile on 'pointwise'" in found.advice
