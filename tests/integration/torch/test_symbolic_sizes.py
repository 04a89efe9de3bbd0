"""Tensors that stand for others are not asked for sizes: the question would change the program."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("torch")

from deepcontext import _native
from deepcontext.collectors.torch.tensor_keys import find_tensor_keys

if TYPE_CHECKING:
    from collections.abc import Iterator

NET = """
    import sys, torch, deepcontext

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(4)))
            self.first = torch.nn.Parameter(torch.zeros(1, 1, 8))
        def forward(self, batch):
            first = self.first.expand(batch.shape[0], -1, -1)  # its storage has no dynamic size
            return torch.sigmoid(self.layers(torch.cat([first, batch], 1))).sum(1)

    net = Net()
    deepcontext.start("out.dcprof", shapes=SHAPES)
"""

COMPILED = """
    compiled = torch.compile(net, backend="aot_eager", dynamic=True)
    with torch.inference_mode():
        for length in range(10, 80, 10):
            compiled(torch.randn(length, 2 * length, 8))
"""

EXPORTED = """
    sizes = {0: torch.export.Dim("batch", max=100), 1: torch.export.Dim("length", max=100)}
    for strict in (False, True):  # raises where a size became a constant
        torch.export.export(net, (torch.randn(4, 10, 8),), dynamic_shapes=(sizes,), strict=strict)
    deepcontext.stop()
"""

MAPPED = """
    rows = torch.randn(5, 3)
    torch.func.vmap(lambda row: (row * row).sum())(rows)
    rows * rows
    deepcontext.stop()
"""


@pytest.mark.long
@pytest.mark.parametrize("shapes", ["False", "True"])
def test_a_function_of_dynamic_sizes_is_compiled_once_and_exported(
    script: Any, shapes: str
) -> None:
    script.run(NET.replace("SHAPES", shapes) + COMPILED + EXPORTED)
    recording = script.recording()
    names = {recording.profile.frame(node).name for node in recording.operators()}
    compiled = {name.partition("(")[0] for name in names if name.startswith("Torch-Compiled")}
    assert compiled == {"Torch-Compiled Region: 0/0"}


def test_tensors_of_transforms_have_no_shape_and_others_do(script: Any) -> None:
    script.run(NET.replace("SHAPES", "True") + MAPPED)
    recording = script.recording()
    assert recording.operators("aten::mul(f32[5, 3], f32[5, 3])")


@pytest.fixture
def _found_again() -> Iterator[None]:
    yield
    assert not find_tensor_keys()


@pytest.mark.usefixtures("_found_again")
def test_without_proof_no_tensor_is_asked() -> None:
    import torch

    tensors = [torch.ones(2), torch.ones(2).double(), torch.ones(2, 2)]
    known = [(t._cdata, 0x123456789) for t in tensors]
    assert "0 places" in _native.torch_find_tensor_keys(known, 1)
    assert "too few" in _native.torch_find_tensor_keys(known[:2], 1)
    assert "cannot be read" in _native.torch_find_tensor_keys([*known[:2], (8, 1)], 1)


@pytest.mark.usefixtures("_found_again")
def test_a_torch_of_another_kind_gives_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.delattr(torch._C, "_dispatch_keys")
    assert "_dispatch_keys" in find_tensor_keys()
    monkeypatch.delitem(sys.modules, "torch")
    assert find_tensor_keys()
