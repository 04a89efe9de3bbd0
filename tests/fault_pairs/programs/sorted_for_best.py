"""Sample texts from a language model, from the most likely words only."""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class Sampling:
    best: int = 40
    temperature: float = 0.8


class LanguageModel(nn.Module):
    def __init__(self, vocabulary: int, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, size)
        self.cell = nn.GRUCell(size, size)
        self.head = nn.Linear(size, vocabulary)

    def forward(
        self, tokens: torch.Tensor, state: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        state = self.cell(self.embedding(tokens), state)
        return self.head(state), state


def choose(logits: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    values, words = torch.sort(logits, dim=-1, descending=True)  # the problem
    chances = (values[:, : sampling.best] / sampling.temperature).softmax(-1)
    return words.gather(-1, torch.multinomial(chances, 1)).squeeze(-1)


class Writer:
    def __init__(self, model: LanguageModel, sampling: Sampling) -> None:
        self.model = model
        self.sampling = sampling

    @torch.inference_mode()
    def write(self, starts: torch.Tensor, length: int) -> torch.Tensor:
        state = torch.zeros(len(starts), self.model.cell.hidden_size)
        words = starts
        texts = [starts]
        for _ in range(length):
            logits, state = self.model(words, state)
            words = choose(logits, self.sampling)
            texts.append(words)
        return torch.stack(texts, 1)


def main(length: int) -> None:
    torch.manual_seed(0)
    model = LanguageModel(50_000, 96).eval()
    texts = Writer(model, Sampling()).write(torch.arange(8), length)
    print(texts.shape, texts[:, -1].tolist())


if __name__ == "__main__":
    main(100)
