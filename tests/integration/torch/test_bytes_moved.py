"""Bytes that real models move, against the tensors that their operators take and return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.profiler.format.metric import CALL_DURATION_NS
from deepcontext.profiler.model.bytes_moved import operator_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext.profiler.model.recorded_operators import CountedOperators

    Run = Callable[[], object]

torch = pytest.importorskip("torch")
python_dispatch = pytest.importorskip("torch.utils._python_dispatch")
pytree = pytest.importorskip("torch.utils._pytree")
nn = torch.nn
functional = nn.functional

# They describe or reserve memory.
_VIEWS = {"view", "_unsafe_view", "t", "transpose", "expand", "detach", "empty", "empty_like"}
# They write all of a tensor and read nothing.
_WRITES_ONLY = {"fill_", "zero_", "ones_like", "zeros_like", "full_like", "scalar_tensor"}


class Tensors(python_dispatch.TorchDispatchMode):  # type: ignore[misc, name-defined]
    """Adds up the bytes of the tensors that each operator takes and returns."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        result = func(*args, **(kwargs or {}))
        name = str(func).split(".")[1]
        if name not in _VIEWS:
            read = () if name in _WRITES_ONLY else (args, kwargs)
            leaves = [*pytree.tree_leaves(read), *pytree.tree_leaves(result)]
            self.bytes += sum(
                each.numel() * each.itemsize for each in leaves if isinstance(each, torch.Tensor)
            )
        return result


def perceptron(dtype: Any) -> Run:
    model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 32))
    model = model.to(dtype)
    x, target = torch.randn(256, 64, dtype=dtype), torch.randint(0, 32, (256,))
    return lambda: functional.cross_entropy(model(x), target).backward()


def attention(dtype: Any) -> Run:
    query, key, value = (torch.randn(2, 4, 64, 16, dtype=dtype) for _ in range(3))
    mask = torch.ones(64, 64, dtype=torch.bool).tril()

    def run() -> None:
        scores = (query @ key.transpose(-1, -2) / 4).masked_fill(~mask, -1e4)
        _ = scores.softmax(-1) @ value

    return run


def optimizer(dtype: Any) -> Run:
    weight = torch.randn(128, 128, dtype=dtype, requires_grad=True)
    step = torch.optim.AdamW([weight], foreach=False)
    weight.grad = torch.randn(128, 128, dtype=dtype)
    return step.step


def convolutions(dtype: Any) -> Run:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3))
    model = model.to(dtype)
    images = torch.randn(4, 3, 32, 32, dtype=dtype)
    return lambda: model(images).sum().backward()


@pytest.fixture
def count(record: Any) -> Callable[[Run], CountedOperators]:
    """Return a function that runs a function, and returns the bytes found in its profile."""

    def count(run: Run) -> CountedOperators:
        profile = record(run, shapes=True).profile
        found = operator_bytes(profile.frames, profile.tree, profile.metrics[CALL_DURATION_NS.name])
        assert [profile.frame(node).name for node in found.unknown] == []
        return found

    return count


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("make", [perceptron, attention, optimizer, convolutions])
def test_bytes_are_those_of_the_tensors_taken_and_returned(
    make: Callable[[Any], Run], dtype: str, count: Callable[[Run], CountedOperators]
) -> None:
    run = make(getattr(torch, dtype))
    run()  # the first makes gradients and state
    with Tensors() as tensors:
        run()
    found = count(run).values.sum()
    assert found == pytest.approx(tensors.bytes, rel=0.03)


def test_an_embedding_reads_the_chosen_rows(count: Callable[[Run], CountedOperators]) -> None:
    table, tokens = torch.randn(1000, 16), torch.randint(0, 1000, (3, 5))
    found = count(lambda: functional.embedding(tokens, table))
    assert found.values.sum() == 8 * 15 + 2 * 4 * 15 * 16


def test_autocast_counts_the_narrow_product_and_the_casts(
    count: Callable[[Run], CountedOperators],
) -> None:
    a, b = torch.randn(8, 16), torch.randn(16, 4)

    def run() -> None:
        with torch.autocast("cpu", torch.bfloat16):
            torch.mm(a, b)

    found = count(run)
    casts = (4 + 2) * (8 * 16 + 16 * 4)
    assert found.values.sum() == casts + 2 * (8 * 16 + 16 * 4 + 8 * 4)
    assert set(found.types) == {"f32", "bf16"} or found.types.count("bf16") == 3
