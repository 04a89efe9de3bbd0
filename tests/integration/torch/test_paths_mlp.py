"""The complete tree of a small network: every operator, forward and backward, on its exact path."""

from __future__ import annotations

import gc
import re
from typing import Any

import pytest

torch = pytest.importorskip("torch")


class Net(torch.nn.Module):  # type: ignore[name-defined, misc]
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = torch.nn.Linear(8, 16)
        self.fc2 = torch.nn.Linear(16, 4)

    def forward(self, batch: Any) -> Any:
        hidden = torch.relu(self.fc1(batch))
        return self.fc2(hidden)


def train(net: Any, optimizer: Any, batch: Any, steps: int) -> None:
    for _ in range(steps):
        step(net, optimizer, batch)


def step(net: Any, optimizer: Any, batch: Any) -> None:
    loss = net(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


# Printed by torch 2.13 on x86-64: every frame of three steps, with the number of calls.
OUTLINE = """\
train: step(net, optimizer, batch)
  step: loss = net(batch).square().mean()
    Net  (forward)
      Net.forward: hidden = torch.relu(self.fc1(batch))
        Linear 'fc1'
          Linear.forward
            aten::linear x3
              aten::t x3
                aten::transpose x3
                  aten::as_strided x3
                TBackward0 x3  (backward)
                  aten::t x3
                    aten::transpose x3
                      aten::as_strided x3
              aten::addmm x3
                aten::expand x3
                  aten::as_strided x3
                aten::copy_ x3
                aten::resolve_conj x6
                AddmmBackward0 x3  (backward)
                  aten::t x6
                    aten::transpose x6
                      aten::as_strided x6
                  aten::mm x3
                    aten::resolve_conj x6
                  aten::sum x3
                    aten::fill_ x3
                  aten::view x3
        aten::relu x3
          aten::clamp_min x3
          ReluBackward0 x3  (backward)
            aten::threshold_backward x3
      Net.forward: return self.fc2(hidden)
        Linear 'fc2'
          Linear.forward
            aten::linear x3
              aten::t x3
                aten::transpose x3
                  aten::as_strided x3
                TBackward0 x3  (backward)
                  aten::t x3
                    aten::transpose x3
                      aten::as_strided x3
              aten::addmm x3
                aten::expand x3
                  aten::as_strided x3
                aten::copy_ x3
                aten::resolve_conj x6
                AddmmBackward0 x3  (backward)
                  aten::t x9
                    aten::transpose x9
                      aten::as_strided x9
                  aten::mm x6
                    aten::resolve_conj x15
                  aten::sum x3
                    aten::fill_ x3
                  aten::view x3
    aten::square x3  (forward)
      aten::pow x3
        aten::result_type x3
        aten::to x3
        PowBackward0 x3  (backward)
          aten::pow x3
            aten::result_type x3
            aten::to x3
            aten::copy_ x3
          aten::mul x6
            aten::mul x3
              aten::to x3
                aten::_to_copy x3
                  aten::empty_strided x3
                  aten::copy_ x3
    aten::mean x3  (forward)
      aten::mean x3
        aten::sum x3
          aten::as_strided x3
          aten::fill_ x3
        aten::div_ x3
          aten::div_ x3
            aten::to x3
              aten::_to_copy x3
                aten::empty_strided x3
                aten::copy_ x3
      MeanBackward0 x3  (backward)
        aten::expand x3
          aten::as_strided x3
        aten::div x3
          aten::div x3
            aten::to x3
              aten::_to_copy x3
                aten::empty_strided x3
                aten::copy_ x3
  step: optimizer.zero_grad()
    Optimizer.zero_grad
      <Optimizer.zero_grad#SGD.zero_grad> x3  (optimizer)
  step: loss.backward()
    Tensor.backward
      backward  (backward)
        _make_grads
          aten::ones_like x3
            aten::empty_like x3
              aten::empty_strided x3
            aten::fill_ x3
      backward  (backward)
        torch::autograd::AccumulateGrad x12
          aten::detach x12
            detach x12
  step: optimizer.step()
    <Optimizer.step#SGD.step> x3  (optimizer)
      SGD.step
        sgd
          _single_tensor_sgd
            aten::add_ x12
"""


@pytest.mark.skipif(
    not torch.__version__.startswith("2.13."), reason="which operators run is torch 2.13's choice"
)
def test_every_operator_is_on_its_exact_path(record: Any) -> None:
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, foreach=False)
    recording = record(train, net, optimizer, torch.randn(2, 8), 3)
    assert recording.outline() == OUTLINE
    assert recording.counters["backward_links_missed"] == 0


def test_the_tree_is_the_same_after_a_hundred_steps(record: Any) -> None:
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    gc.disable()  # a long collection has a node of its own
    try:
        few = record(train, net, optimizer, torch.randn(2, 8), 3)
        many = record(train, net, optimizer, torch.randn(2, 8), 100)
    finally:
        gc.enable()
    assert re.sub(r" x\d+", "", many.outline()) == re.sub(r" x\d+", "", few.outline())
    assert many.counters["nodes"] == few.counters["nodes"]
    assert many.calls("aten::addmm") == 200
