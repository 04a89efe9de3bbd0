"""A training loop in the form that torch's tutorials teach, run as a script of its own."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.ecosystem

pytest.importorskip("torch")

# Images and labels are made, not downloaded; the rest is what a beginner writes.
PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Clothes(Dataset):
    def __init__(self, count):
        self.images = torch.rand(count, 1, 28, 28)
        self.labels = torch.randint(0, 10, (count,))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return (self.images[index] - 0.5) / 0.5, self.labels[index]


class NeuralNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.linear_relu_stack = nn.Sequential(
            nn.Linear(28 * 28, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)
        )

    def forward(self, x):
        x = self.flatten(x)
        logits = self.linear_relu_stack(x)
        return logits


def train(dataloader, model, loss_fn, optimizer):
    model.train()
    for batch, (X, y) in enumerate(dataloader):
        pred = model(X)
        loss = loss_fn(pred, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if batch % 10 == 0:
            print(f"loss: {loss.item():>7f}")


def test(dataloader, model, loss_fn):
    model.eval()
    loss, correct = 0, 0
    with torch.no_grad():
        for X, y in dataloader:
            pred = model(X)
            loss += loss_fn(pred, y).item()
            correct += (pred.argmax(1) == y).type(torch.float).sum().item()
    print(f"Accuracy: {100 * correct / len(dataloader.dataset):>0.1f}%, loss: {loss:>8f}")


if __name__ == "__main__":
    workers = 2
    train_dataloader = DataLoader(Clothes(512), batch_size=32, num_workers=workers, shuffle=True)
    test_dataloader = DataLoader(Clothes(128), batch_size=32)
    model = NeuralNetwork()
    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for epoch in range(3):
        train(train_dataloader, model, loss_fn, optimizer)
        test(test_dataloader, model, loss_fn)
    torch.save(model.state_dict(), "model.pth")
    again = NeuralNetwork()
    again.load_state_dict(torch.load("model.pth", weights_only=True))
    with torch.no_grad():
        print(again(Clothes(1)[0][0][None]).argmax().item())
"""


def test_it_behaves_the_same_and_every_phase_is_there(program: Any) -> None:
    printed, profile = program.profile(PROGRAM)
    assert printed.count("Accuracy") == 3
    assert profile.trust.counters["backward_links_missed"] == 0
    assert profile.trust.counters["forked_children"] == 3 * 2
    steps = 3 * 16
    query = profile.query().kind("operator")
    backward = query.name("AddmmBackward0").phase("backward").module("linear_relu_stack.2")
    assert [row.count for row in backward.table("call_duration_ns")] == [steps]
    for node in backward.nodes():
        path = [str(frame) for frame in profile.path(int(node))]
        assert any(step.startswith("train ") for step in path)
        assert not any(step.startswith("test ") for step in path)
    for phase in ("forward", "backward", "optimizer", "data_loading"):
        assert profile.query().phase(phase).total("host_time_ns") > 0
