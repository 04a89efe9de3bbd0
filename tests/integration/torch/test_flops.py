"""Floating-point operations of real models, against PyTorch's own counter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.profiler.format.metric import CALL_DURATION_NS
from deepcontext.profiler.model.flops import operator_flops

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext.profiler.model.recorded_operators import CountedOperators

    Count = Callable[[Callable[[], object]], CountedOperators]

torch = pytest.importorskip("torch")
flop_counter = pytest.importorskip("torch.utils.flop_counter")
nn = torch.nn

BATCH = 3


def transformer() -> Callable[[], None]:
    layer = nn.TransformerEncoderLayer(32, 4, dim_feedforward=64, batch_first=True)
    model = nn.Sequential(nn.Embedding(50, 32), nn.TransformerEncoder(layer, 2), nn.Linear(32, 50))
    tokens = torch.randint(0, 50, (BATCH, 10))
    return lambda: model(tokens).sum().backward()


def transformer_in_inference() -> Callable[[], None]:
    layer = nn.TransformerEncoderLayer(32, 4, dim_feedforward=64, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    x = torch.randn(BATCH, 10, 32)

    def run() -> None:
        with torch.no_grad():
            model(x, mask=torch.zeros(10, 10))

    return run


def convolutions() -> Any:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1),
        nn.Conv2d(8, 16, 1, bias=False),
        nn.ConvTranspose2d(16, 6, 2, stride=2),
        nn.ConvTranspose2d(6, 6, 3, padding=1),
        nn.Conv2d(6, 4, 5, dilation=2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 10),
    )


def conv_net() -> Callable[[], None]:
    model, images = convolutions(), torch.randn(BATCH, 3, 32, 32)
    return lambda: model(images).sum().backward()


def conv_net_in_inference() -> Callable[[], None]:
    model, images = convolutions().eval(), torch.randn(BATCH, 3, 32, 32)

    def run() -> None:
        with torch.no_grad():
            model(images)

    return run


def frozen_convolution() -> Callable[[], None]:
    model, images = convolutions(), torch.randn(BATCH, 3, 32, 32)
    model[3].requires_grad_(requires_grad=False)
    return lambda: model(images).sum().backward()


def one_dimension_and_three() -> Callable[[], None]:
    one, three = nn.Conv1d(4, 6, 3), nn.Conv3d(2, 3, 3, padding=1)
    x = torch.randn(BATCH, 4, 20, requires_grad=True)
    y = torch.randn(BATCH, 2, 6, 6, 6, requires_grad=True)
    return lambda: (one(x).sum() + three(y).sum()).backward()


def lstm() -> tuple[Callable[[], None], Callable[[], None]]:
    model, x = nn.LSTM(12, 20, num_layers=2, batch_first=True), torch.randn(BATCH, 9, 12)
    return lambda: model(x), lambda: model(x)[0].sum().backward()


def attention_by_hand() -> Callable[[], None]:
    query, key, value = (torch.randn(BATCH, 4, 16, 8, requires_grad=True) for _ in range(3))
    return lambda: ((query @ key.transpose(-1, -2)).softmax(-1) @ value).sum().backward()


def cross_attention() -> Callable[[], None]:
    model = nn.MultiheadAttention(32, 4, batch_first=True)
    queries, keys = torch.randn(BATCH, 7, 32), torch.randn(BATCH, 11, 32)
    return lambda: model(queries, keys, keys, need_weights=False)


def products() -> Callable[[], None]:
    a, b = torch.randn(6, 7, requires_grad=True), torch.randn(7, 5, requires_grad=True)
    batches = torch.randn(BATCH, 6, 7), torch.randn(BATCH, 7, 5)

    def run() -> None:
        torch.einsum("ij,jk->ik", a, b).sum().backward()
        torch.baddbmm(torch.zeros(BATCH, 6, 5), *batches)
        torch.addmm(torch.zeros(6, 5), a.detach(), b.detach())
        torch.matmul(batches[0], b.detach())

    return run


CASES = {
    make.__name__: make
    for make in (
        transformer,
        transformer_in_inference,
        conv_net,
        conv_net_in_inference,
        frozen_convolution,
        one_dimension_and_three,
        attention_by_hand,
        cross_attention,
        products,
    )
}


@pytest.fixture
def count(record: Any) -> Count:
    """Return a function that runs a function, and returns the operations found in its profile."""

    def count(run: Callable[[], object]) -> CountedOperators:
        profile = record(run, shapes=True).profile
        return operator_flops(profile.frames, profile.tree, profile.metrics[CALL_DURATION_NS.name])

    return count


def counted_by_torch(run: Callable[[], None]) -> int:
    """Count in the products that attention and encoders are made of; fused, torch counts none on a CPU."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    with (
        torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH),
        flop_counter.FlopCounterMode(display=False) as counter,
    ):
        run()
    torch.backends.mha.set_fastpath_enabled(fast)
    return int(counter.get_total_flops())


@pytest.mark.parametrize("name", CASES)
def test_flops_are_those_that_torch_counts(name: str, count: Count) -> None:
    run = CASES[name]()
    expected = counted_by_torch(run)
    found = count(lambda: [run() for _ in range(2)])
    assert expected > 0
    assert not len(found.unknown)
    assert found.values.sum() == pytest.approx(2 * expected, rel=0.01)


@pytest.mark.parametrize("mask", ["full", "causal"])
@pytest.mark.parametrize("heads_of_keys", [4, 2])
def test_fused_attention_counts_as_torch_counts_its_kernels_on_gpus(
    mask: str, heads_of_keys: int, count: Count
) -> None:
    shapes = [(BATCH, heads, length, 8) for heads, length in ((4, 16), *[(heads_of_keys, 12)] * 2)]
    query, key, value = (torch.randn(shape, requires_grad=True) for shape in shapes)
    attend = nn.functional.scaled_dot_product_attention
    is_grouped = heads_of_keys != 4
    found = count(
        lambda: (
            attend(query, key, value, is_causal=mask == "causal", enable_gqa=is_grouped)
            .sum()
            .backward()
        )
    )
    forward = flop_counter.sdpa_flop_count(*shapes)
    assert forward == 4 * BATCH * 4 * 16 * 12 * 8
    # Five products in the backward for two in the forward, or four where the scores were kept.
    assert found.values.sum() in {3.5 * forward, 3 * forward}


@pytest.mark.filterwarnings("ignore::UserWarning")  # of torch, that TF32 is not set
def test_layers_of_an_lstm_count_as_their_products(count: Count) -> None:
    infer, run = lstm()
    with torch.backends.mkldnn.flags(enabled=False):
        in_parts = count(run)
        expected = counted_by_torch(run)
        forward = counted_by_torch(infer)
    assert in_parts.values.sum() == pytest.approx(expected, rel=0.01)
    # The layer's backward computes all gradients, those of the input, too.
    assert count(run).values.sum() == 3 * forward


def test_a_grouped_convolution_counts_what_it_multiplies(count: Count) -> None:
    """By hand: PyTorch's counter takes every input channel for every output channel in the backward."""
    model = nn.Conv2d(8, 12, 3, groups=4, padding=1)
    images = torch.randn(BATCH, 8, 10, 10, requires_grad=True)
    forward = 2 * BATCH * 10 * 10 * 12 * (8 // 4) * 9
    assert count(lambda: model(images).sum().backward()).values.sum() == 3 * forward
