"""Backward operators hang below the forward operator, and so below the line, that caused them.

The oracle is torch's anomaly mode: while it is on, torch stores the Python stack of every autograd
node at the node. It is on during forward only, so that backward runs as always.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from typing import Any

import pytest

from deepcontext.profiler.format.frame import FrameKind, Phase

torch = pytest.importorskip("torch")
nn = torch.nn
F = torch.nn.functional

_FRAME = re.compile(r'File "(.*?)", line (\d+), in')


class ConvNet(nn.Module):  # type: ignore[name-defined, misc]
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.block = nn.ModuleList([nn.Conv2d(8, 8, 3, padding=1) for _ in range(2)])
        self.head = nn.Linear(8 * 16, 10)

    def forward(self, images: Any) -> Any:
        features = self.stem(images)
        for layer in self.block:
            features = features + F.gelu(layer(features))
        pooled = F.max_pool2d(features, 2)
        return self.head(F.dropout(torch.flatten(pooled, 1), 0.5))


class Mlp(nn.Module):  # type: ignore[name-defined, misc]
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.second = nn.Linear(16, 4)

    def forward(self, batch: Any) -> Any:
        hidden = torch.tanh(self.first(batch))
        hidden = hidden * hidden.sigmoid() + hidden.mean(dim=1, keepdim=True)
        return self.second(hidden)


def mlp_loss() -> Any:
    return Mlp()(torch.randn(2, 8)).square().mean()


def transformer_loss() -> Any:
    encoder = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True)
    tokens = torch.randint(0, 11, (2, 5))
    hidden = encoder(nn.Embedding(11, 16)(tokens))
    logits = nn.Linear(16, 11)(hidden)
    return F.cross_entropy(logits.flatten(0, 1), tokens.flatten())


def conv_loss() -> Any:
    logits = ConvNet()(torch.randn(2, 3, 8, 8))
    return F.cross_entropy(logits, torch.tensor([1, 2]))


def indexing_loss() -> Any:
    table = torch.randn(6, 5, requires_grad=True)
    rows = table[torch.tensor([0, 2, 2])]
    rows = torch.cat([rows, table[1:3].detach(), rows[:, ::2].repeat(1, 2)[:, :5]])
    top, _ = rows.max(dim=1)
    parts = torch.stack(rows.unbind(0)[:2]).logsumexp(1)
    return (top.cumsum(0)[-1] + torch.einsum("i,i->", parts, parts)).exp().log1p()


class Recorded:
    """The autograd nodes below a loss with the lines that made them, as torch knows them."""

    def __init__(self, loss: Any) -> None:
        self.made_at: Counter[tuple[str, tuple[tuple[str, int], ...]]] = Counter()
        self._visit(loss.grad_fn)

    def _visit(self, root: Any) -> None:
        pending, seen = [root], set()
        while pending:
            node = pending.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            pending.extend(following for following, _ in node.next_functions)
            if not node.name().endswith("AccumulateGrad"):
                lines = _FRAME.findall("".join(node.metadata["traceback_"]))
                own = tuple((file, int(line)) for file, line in lines if file == __file__)
                self.made_at[node.name(), own[-2:]] += 1


def run_backward(make_loss: Any, expected: list[Recorded]) -> None:
    torch.autograd.set_detect_anomaly(True)
    try:
        loss = make_loss()
    finally:
        torch.autograd.set_detect_anomaly(False)
    expected.append(Recorded(loss))
    loss.backward()


def ran_under(recording: Any) -> Counter[tuple[str, tuple[tuple[str, int], ...]]]:
    """Backward operators with the last two lines of this file above them, with their calls."""
    ran: Counter[tuple[str, tuple[tuple[str, int], ...]]] = Counter()
    for node in recording.operators(phase=Phase.BACKWARD):
        name = recording.frame(node).name
        parent = recording.phase(recording.ancestors(node)[-1])
        if not name.endswith(("Backward", "Backward0", "Backward1")) or parent == Phase.BACKWARD:
            continue
        above = [recording.frame(at) for at in recording.ancestors(node)]
        lines = [(frame.file, frame.line) for frame in above if frame.file == __file__]
        ran[name, tuple(lines[-2:])] += recording.count(node)
    return ran


@pytest.mark.parametrize(
    ("make_loss", "fewest"),
    [(mlp_loss, 10), (transformer_loss, 35), (conv_loss, 15), (indexing_loss, 15)],
)
def test_every_backward_operator_is_under_the_line_of_its_forward(
    record: Any, make_loss: Any, fewest: int
) -> None:
    expected: list[Recorded] = []
    recording = record(run_backward, make_loss, expected)
    assert expected[0].made_at.total() >= fewest
    assert ran_under(recording) == expected[0].made_at
    assert recording.counters["backward_links_missed"] == 0
    assert recording.counters["backward_links_found"] == expected[0].made_at.total()


@pytest.mark.parametrize("make_loss", [mlp_loss, transformer_loss, conv_loss])
def test_only_gradient_accumulation_stays_under_the_backward_call(
    record: Any, make_loss: Any
) -> None:
    recording = record(run_backward, make_loss, [])
    strays = {
        tuple(recording.path(node)[3:])
        for node in recording.operators(phase=Phase.BACKWARD)
        if not any(make_loss.__name__ in text for text in recording.path(node))
        and recording.text(recording.ancestors(node)[-1]) == "backward"
    }
    assert strays == {("torch::autograd::AccumulateGrad",)}


class Scaled(torch.autograd.Function):  # type: ignore[name-defined, misc]
    @staticmethod
    def forward(ctx: Any, value: Any, factor: float) -> Any:
        ctx.factor = factor
        return value * factor

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return scaled_gradient(gradient, ctx.factor), None


def scaled_gradient(gradient: Any, factor: float) -> Any:
    return gradient.mul(factor)


def use_custom_function() -> None:
    value = torch.ones(3, requires_grad=True)
    scaled = Scaled.apply(value, 3.0)
    scaled.sum().backward()


def test_frames_of_a_custom_backward_are_below_it(record: Any) -> None:
    recording = record(use_custom_function)
    above = ["use_custom_function: scaled = Scaled.apply(value, 3.0)"]
    # Newer versions have no Python frame for it.
    above += ["Function.apply"] if "Function.apply" in recording.paths("Scaled")[0] else []
    assert recording.paths("Scaled") == [[*above, "Scaled"]]
    (path,) = (p for p in recording.paths("aten::mul") if "ScaledBackward" in p)
    assert path == [
        *above,
        "Scaled",
        "ScaledBackward",
        "BackwardCFunction.apply",
        "Scaled.backward: return scaled_gradient(gradient, ctx.factor), None",
        "scaled_gradient: return gradient.mul(factor)",
        "aten::mul",
    ]
    assert recording.phase(recording.nodes(name="ScaledBackward")[0]) == Phase.BACKWARD
    assert recording.counters["backward_links_missed"] == 0


def differentiate_twice() -> None:
    value = torch.ones(3, requires_grad=True)
    cubed = value.pow(3)
    (first,) = torch.autograd.grad(cubed.sum(), value, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), value)
    assert second.tolist() == [6.0, 6.0, 6.0]


def test_second_derivative_is_below_the_first(record: Any) -> None:
    recording = record(differentiate_twice)
    pow_line = "differentiate_twice: cubed = value.pow(3)"
    assert [pow_line, "aten::pow", "PowBackward0"] in recording.paths("PowBackward0")
    assert [pow_line, "aten::pow", "PowBackward0", "aten::pow", "PowBackward0"] in (
        recording.paths("PowBackward0")
    )
    assert all(path[0] == pow_line for path in recording.paths("MulBackward0"))
    assert recording.paths("MulBackward0")
    assert recording.counters["backward_links_missed"] == 0


def assign_to_slices(rows: int) -> None:
    weight = torch.ones(3, requires_grad=True)
    filled = torch.zeros(rows, 3)
    for row in range(rows):
        filled[row] = weight * row
    filled.sum().backward()


def test_backward_of_an_assignment_to_a_slice_is_below_it(record: Any) -> None:
    recording = record(assign_to_slices, 3)
    line = "assign_to_slices: filled[row] = weight * row"
    name = "torch::autograd::CopySlices"
    (path,) = recording.paths(name)
    assert path == [line, "aten::copy_", name]
    assert recording.calls(name) == 3
    assert recording.counters["backward_links_missed"] == 0


def forward_there(shared: list[Any]) -> None:
    shared.append(Mlp()(torch.randn(2, 8)).square().mean())


def backward_there(shared: list[Any]) -> None:
    shared[0].backward()


def in_threads(*work: Any) -> None:
    shared: list[Any] = []
    for function in work:
        thread = threading.Thread(target=function, args=(shared,), name=f"{function.__name__}-7")
        thread.start()
        thread.join()


@pytest.mark.parametrize(
    ("make", "run"),
    [
        pytest.param((forward_there,), (backward_there,), id="both in threads"),
        pytest.param((), (forward_there, backward_there), id="in two threads, one after the other"),
    ],
)
def test_backward_finds_a_forward_of_another_thread(
    record: Any, make: tuple[Any, ...], run: tuple[Any, ...]
) -> None:
    recording = record(in_threads, *make, *run)
    assert recording.counters["backward_links_missed"] == 0
    (path,) = recording.paths("TanhBackward0")
    assert path[-5:] == [
        "forward_there: shared.append(Mlp()(torch.randn(2, 8)).square().mean())",
        "Mlp",
        "Mlp.forward: hidden = torch.tanh(self.first(batch))",
        "aten::tanh",
        "TanhBackward0",
    ]
    accumulated = recording.paths("torch::autograd::AccumulateGrad")
    assert all("backward_there: shared[0].backward()" in path for path in accumulated)


def backward_in_a_thread() -> None:
    shared: list[Any] = []
    forward_there(shared)
    thread = threading.Thread(target=backward_there, args=(shared,))
    thread.start()
    thread.join()


def test_backward_thread_finds_the_main_threads_forward(record: Any) -> None:
    recording = record(backward_in_a_thread)
    assert recording.counters["backward_links_missed"] == 0
    (path,) = recording.paths("TanhBackward0")
    assert path[0] == "backward_in_a_thread: forward_there(shared)"


def concurrent_training(threads: int, steps: int) -> None:
    def train() -> None:
        net = Mlp()
        for _ in range(steps):
            net(torch.randn(2, 8)).square().mean().backward()

    workers = [threading.Thread(target=train) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def test_threads_that_train_at_once_do_not_mix(record: Any) -> None:
    """Their autograd nodes have equal sequence numbers."""
    recording = record(concurrent_training, 4, 50)
    assert recording.counters["backward_links_missed"] == 0
    assert recording.calls("TanhBackward0") == 200
    (path,) = recording.paths("TanhBackward0")
    assert path[-3:] == [
        "Mlp.forward: hidden = torch.tanh(self.first(batch))",
        "aten::tanh",
        "TanhBackward0",
    ]


def long_chain(length: int) -> None:
    value = torch.ones(2, requires_grad=True)
    for number in range(length):
        value = value.sin() if number % 2 else value.cos()
    value.sum().backward()


def chain_twice(length: int) -> None:
    long_chain(length)
    long_chain(length)


def test_more_live_autograd_nodes_than_the_first_window_holds(record: Any) -> None:
    """The first miss asks for a larger window; misses are counted, and none is put wrong."""
    length = 3 * 8192
    recording = record(chain_twice, length)
    found = recording.counters["backward_links_found"]
    missed = recording.counters["backward_links_missed"]
    assert found + missed == 2 * (length + 1)
    line = "long_chain: value = value.sin() if number % 2 else value.cos()"
    for name, forward in (("SinBackward0", "aten::sin"), ("CosBackward0", "aten::cos")):
        right = [path for path in recording.paths(name) if path[-3:] == [line, forward, name]]
        assert len(right) == 2
    # One growth is enough: the second chain was found whole.
    assert found == 8192 + length + 1


def accumulate() -> None:
    net = Mlp()
    for _ in range(3):
        net(torch.randn(2, 8)).sum().backward()


def test_gradient_accumulation_is_under_the_backward_call(record: Any) -> None:
    recording = record(accumulate)
    (path,) = recording.paths("torch::autograd::AccumulateGrad")
    assert path == [
        "accumulate: net(torch.randn(2, 8)).sum().backward()",
        "Tensor.backward",
        "backward",
        "torch::autograd::AccumulateGrad",
    ]
    node = recording.only(FrameKind.OPERATOR, "torch::autograd::AccumulateGrad")
    assert recording.count(node) == 3 * 4
    assert not [
        node for node in recording.operators() if "evaluate_function" in recording.text(node)
    ]
