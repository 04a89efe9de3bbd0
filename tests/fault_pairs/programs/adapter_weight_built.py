"""Fine-tune a frozen classifier of texts with low-rank adapters."""

from collections.abc import Iterator

import torch
from torch import nn


class Adapted(nn.Module):
    """A frozen linear layer and the low-rank change that training finds for it."""

    def __init__(self, frozen: nn.Linear, rank: int, scale: float) -> None:
        super().__init__()
        self.frozen = frozen.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, frozen.in_features) / frozen.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(frozen.out_features, rank))
        self.scale = scale

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        weight = self.frozen.weight + self.scale * (self.up @ self.down)  # the problem
        return nn.functional.linear(values, weight, self.frozen.bias)


class Classifier(nn.Module):
    def __init__(self, words: int, size: int, layers: int, classes: int) -> None:
        super().__init__()
        self.table = nn.EmbeddingBag(words, size)
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(layers))
        self.layers = nn.ModuleList(nn.Linear(size, size) for _ in range(layers))
        self.head = nn.Linear(size, classes)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        states = self.table(tokens)
        for norm, layer in zip(self.norms, self.layers, strict=True):
            states = states + torch.tanh(layer(norm(states)))
        return self.head(states)


def adapt(model: Classifier, rank: int) -> Classifier:
    model.requires_grad_(False)
    for place, layer in enumerate(model.layers):
        model.layers[place] = Adapted(layer, rank, 2.0)
    model.head.requires_grad_(True)
    return model


def texts(count: int, words: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for _ in range(count):
        classes = torch.randint(0, 4, (16,))
        yield torch.randint(0, words // 2, (16, 40)) + classes[:, None] * words // 8, classes


def train(model: Classifier, steps: int) -> None:
    tuned = [value for value in model.parameters() if value.requires_grad]
    optimizer = torch.optim.SGD(tuned, lr=0.01)
    for step, (tokens, classes) in enumerate(texts(steps, 4000)):
        loss = nn.functional.cross_entropy(model(tokens), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(step, f"{loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    train(adapt(Classifier(4000, 1024, 6, 4), 8), 30)
