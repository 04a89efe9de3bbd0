"""Train a model to guess hidden words."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

IGNORED = -100


@dataclass(frozen=True)
class Masking:
    vocabulary: int
    share: float = 0.15

    def hide(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = torch.rand(tokens.shape) < self.share
        return tokens.masked_fill(hidden, 0), tokens.masked_fill(~hidden, IGNORED)


class Guesser(nn.Module):
    def __init__(self, vocabulary: int, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, size)
        layer = nn.TransformerEncoderLayer(size, 4, 2 * size, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.head = nn.Linear(size, vocabulary)

    def loss(self, tokens: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        states = self.encoder(self.embedding(tokens)).flatten(0, 1)
        labels = labels.flatten()
        logits = self.head(states)  # the problem
        return functional.cross_entropy(logits, labels, ignore_index=IGNORED)


class Texts:
    def __init__(self, vocabulary: int, length: int) -> None:
        self.vocabulary = vocabulary
        self.length = length

    def batch(self, size: int) -> torch.Tensor:
        starts = torch.randint(1, 50, (size, 1))
        return 1 + (starts * torch.arange(1, self.length + 1)) % (self.vocabulary - 1)


def train(model: Guesser, texts: Texts, masking: Masking, steps: int) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        tokens, labels = masking.hide(texts.batch(16))
        loss = model.loss(tokens, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    train(Guesser(10_000, 128), Texts(10_000, 64), Masking(10_000), 25)
