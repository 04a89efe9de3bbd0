"""Train a small transformer encoder."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.inputs = nn.Linear(size, 3 * size)
        self.output = nn.Linear(size, size)

    def mix(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5  # the problem
        return torch.softmax(scores, -1) @ value

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        shape = (*tokens.shape[:2], self.heads, -1)
        query, key, value = (
            part.view(shape).transpose(1, 2) for part in self.inputs(tokens).chunk(3, -1)
        )
        return self.output(self.mix(query, key, value).transpose(1, 2).flatten(2))


class Encoder(nn.Module):
    def __init__(self, size: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Attention(size, 8) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(layers))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        for layer, norm in zip(self.layers, self.norms, strict=True):
            tokens = norm(tokens + layer(tokens))
        return tokens


def train(steps: int, length: int) -> float:
    model = Encoder(128, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss = torch.zeros(())
    for _ in range(steps):
        tokens = torch.randn(2, length, 128)
        loss = (model(tokens) - tokens).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    print(train(4, 1024))
