"""Decode object queries with cross attention."""

import torch
from torch import nn


class DecoderLayer(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(size, 8, batch_first=True)
        self.norm = nn.LayerNorm(size)

    def forward(self, queries: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        mixed, _ = self.attention(queries, memory, memory)  # the problem
        return self.norm(queries + mixed)


class Decoder(nn.Module):
    def __init__(self, size: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(size) for _ in range(layers))
        self.queries = nn.Parameter(torch.randn(300, size))

    def forward(self, memory: torch.Tensor) -> torch.Tensor:
        queries = self.queries.expand(len(memory), -1, -1)
        for layer in self.layers:
            queries = layer(queries, memory)
        return queries


def train(steps: int) -> float:
    model = Decoder(64, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss = torch.zeros(())
    for _ in range(steps):
        loss = model(torch.randn(2, 1500, 64)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    print(train(12))
