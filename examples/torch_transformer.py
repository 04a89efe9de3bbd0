"""Train a small transformer language model on text made up on the spot.

A usual training script: a dataset, a collate function that pads, a model, AdamW with warm-up. The
script does not import deepcontext: `python examples/torch_transformer.py` runs it plainly, and
`deepcontext profile examples/torch_transformer.py` profiles the same program.
"""

from __future__ import annotations

import argparse
import math
import random

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

PAD = 0
SUBJECTS = ("the cat", "a small dog", "my neighbour", "the old ship", "every child", "the river")
VERBS = ("sees", "follows", "forgets", "carries", "sings to", "waits for")
ENDINGS = ("at night", "in the rain", "without a word", "for seven years", "again and again")


def make_sentence(rng: random.Random) -> str:
    clauses = [
        f"{rng.choice(SUBJECTS)} {rng.choice(VERBS)} {rng.choice(SUBJECTS)} {rng.choice(ENDINGS)}"
        for _ in range(rng.randint(1, 3))
    ]
    return ", and ".join(clauses) + "."


class Sentences(Dataset[torch.Tensor]):
    """Sentences of different lengths, one token a character; token 0 is padding."""

    def __init__(self, count: int, seed: int) -> None:
        rng = random.Random(seed)
        self.sentences = [make_sentence(rng) for _ in range(count)]
        alphabet = sorted(set("".join(self.sentences)))
        self.token_of = {character: token for token, character in enumerate(alphabet, start=1)}

    @property
    def vocabulary(self) -> int:
        return len(self.token_of) + 1

    def __len__(self) -> int:
        return len(self.sentences)

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor([self.token_of[character] for character in self.sentences[index]])


def collate(sentences: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Pad to the longest sentence; return the inputs and the same shifted by one as targets."""
    padded = nn.utils.rnn.pad_sequence(sentences, batch_first=True, padding_value=PAD)
    return padded[:, :-1], padded[:, 1:]


class SelfAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        query, key, value = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.qkv(x).chunk(3, dim=-1)
        )
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = SelfAttention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class LanguageModel(nn.Module):
    def __init__(self, vocabulary: int, width: int, heads: int, layers: int, context: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width, padding_idx=PAD)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def train(options: argparse.Namespace) -> float:
    """Train for the asked number of steps; return the last loss in nats per character."""
    data = Sentences(options.batch_size * options.steps, options.seed)
    loader = DataLoader(
        data,
        batch_size=options.batch_size,
        shuffle=True,
        collate_fn=collate,
        num_workers=options.workers,
    )
    context = max(len(sentence) for sentence in data.sentences)
    model = LanguageModel(data.vocabulary, options.width, options.heads, options.layers, context)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr, weight_decay=0.01)
    warm_up = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 10))

    loss_value = math.nan
    for step, (inputs, targets) in enumerate(loader):
        logits = model(inputs)
        loss = functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        warm_up.step()
        loss_value = loss.item()
        if step % options.print_every == 0:
            print(f"step {step:3d}  loss {loss_value:.3f}")
    return loss_value


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a small transformer language model.")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--workers", type=int, default=0, help="DataLoader worker processes")
    parser.add_argument("--threads", type=int, default=1, help="threads inside an operator")
    parser.add_argument("--print-every", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    print(f"final loss {train(options):.3f}")


if __name__ == "__main__":
    main()
