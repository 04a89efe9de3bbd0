"""Answer questions of different lengths with a compiled model."""

from collections.abc import Iterator

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.gate = nn.Linear(size, size)
        self.layers = nn.Sequential(nn.Linear(size, 2 * size), nn.GELU(), nn.Linear(2 * size, size))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        normal = self.norm(values)
        return values + torch.sigmoid(self.gate(normal)) * self.layers(normal)


class Model(nn.Module):
    def __init__(self, vocabulary: int, size: int, depth: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, size)
        self.blocks = nn.Sequential(*(Block(size) for _ in range(depth)))
        self.head = nn.Linear(size, 8)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.embedding(tokens)).mean(1))


class Answers:
    def __init__(self, model: Model) -> None:
        model.eval()
        self.model = torch.compile(model, backend="aot_eager", dynamic=False)  # the problem

    @torch.inference_mode()
    def answer(self, tokens: torch.Tensor) -> int:
        return int(self.model(tokens).argmax())


def questions(count: int, vocabulary: int) -> Iterator[torch.Tensor]:
    lengths = torch.randint(10, 200, (count,)).tolist()
    for length in lengths:
        yield torch.randint(0, vocabulary, (1, length))


def main(count: int) -> None:
    torch.manual_seed(0)
    torch._dynamo.config.recompile_limit = 64
    vocabulary = 5000
    answers = Answers(Model(vocabulary, 128, 4))
    found = [answers.answer(tokens) for tokens in questions(count, vocabulary)]
    print("answers", [found.count(kind) for kind in range(8)])


if __name__ == "__main__":
    main(12)
