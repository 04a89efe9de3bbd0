"""Train a small GPT-like model for a second or two, and exit with a status that sums up the losses.

`program_train.py torch|python SEED`. With PyTorch, or with an autograd engine in plain Python: calls
from C into Python at each operator, generators, exceptions, recursion and a thread that prepares
the batches. That is where the interpreter's frames are in motion.
"""

from __future__ import annotations

import functools
import math
import queue
import random
import struct
import sys
import threading
import zlib
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT = "the profiler never breaks the program that it watches and never hides what it lost. "
VOCABULARY = sorted(set(TEXT))
BLOCK = 8


# -- an autograd engine


class Value:
    """A number that remembers what it was computed from."""

    __slots__ = ("data", "grad", "local", "parents")

    def __init__(
        self, data: float, parents: tuple[Value, ...] = (), local: tuple[float, ...] = ()
    ) -> None:
        self.data = data
        self.grad = 0.0
        self.parents = parents
        self.local = local

    def __add__(self, other: Value | float) -> Value:
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data + other.data, (self, other), (1.0, 1.0))

    def __mul__(self, other: Value | float) -> Value:
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data * other.data, (self, other), (other.data, self.data))

    def __pow__(self, power: float) -> Value:
        return Value(self.data**power, (self,), (power * self.data ** (power - 1),))

    def __radd__(self, other: float) -> Value:
        return self + other

    def __rmul__(self, other: float) -> Value:
        return self * other

    def __neg__(self) -> Value:
        return self * -1.0

    def __truediv__(self, other: Value) -> Value:
        return self * other**-1.0

    def exp(self) -> Value:
        """e to the power of this."""
        result = math.exp(self.data)
        return Value(result, (self,), (result,))

    def log(self) -> Value:
        """The natural logarithm."""
        return Value(math.log(self.data), (self,), (1 / self.data,))

    def relu(self) -> Value:
        """This where it is positive, else 0."""
        return Value(max(0.0, self.data), (self,), (float(self.data > 0),))

    def backward(self) -> None:
        """Fill in the gradients of all that this was computed from."""
        order: list[Value] = []
        seen: set[Value] = set()

        def visit(node: Value) -> None:
            if node not in seen:
                seen.add(node)
                for parent in node.parents:
                    visit(parent)
                order.append(node)

        visit(self)
        self.grad = 1.0
        for node in reversed(order):
            for parent, slope in zip(node.parents, node.local, strict=True):
                parent.grad += slope * node.grad


Vector = list[Value]
Matrix = list[Vector]


def make_matrix(rows: int, columns: int) -> Matrix:
    """Random weights."""
    return [[Value(random.gauss(0, 0.1)) for _ in range(columns)] for _ in range(rows)]


def dot(left: Vector, right: Vector) -> Value:
    """Sum of products, summed up from C."""
    return sum((a * b for a, b in zip(left, right, strict=True)), Value(0.0))


def linear(x: Vector, weight: Matrix) -> Vector:
    """Product of a matrix and a vector."""
    return list(map(functools.partial(dot, x), weight))


def softmax(scores: Vector) -> Vector:
    """Shares that add up to 1."""
    highest = max(scores, key=lambda score: score.data).data
    powers = [(score + -highest).exp() for score in scores]
    total = sum(powers, Value(0.0))
    return [power / total for power in powers]


class Model:
    """One block of attention and a perceptron."""

    WIDTH = 6

    def __init__(self) -> None:
        width, count = self.WIDTH, len(VOCABULARY)
        self.weights = {
            "token": make_matrix(count, width),
            "place": make_matrix(BLOCK, width),
            **{name: make_matrix(width, width) for name in ("query", "key", "value", "out")},
            "up": make_matrix(2 * width, width),
            "down": make_matrix(width, 2 * width),
            "head": make_matrix(count, width),
        }

    def parameters(self) -> Iterator[Value]:
        """All weights."""
        for matrix in self.weights.values():
            for row in matrix:
                yield from row

    def __getattr__(self, name: str) -> Matrix:
        try:
            weights: dict[str, Matrix] = self.__dict__["weights"]
            return weights[name]
        except KeyError as error:
            raise AttributeError(name) from error

    def __call__(self, tokens: list[int]) -> Iterator[Vector]:
        """The scores of the next token, place by place."""
        keys: Matrix = []
        values: Matrix = []
        for place, token in enumerate(tokens):
            x = [a + b for a, b in zip(self.token[token], self.place[place], strict=True)]
            keys.append(linear(x, self.key))
            values.append(linear(x, self.value))
            query = linear(x, self.query)
            shares = softmax([dot(query, key) for key in keys])
            mixed = [dot(shares, list(column)) for column in zip(*values, strict=True)]
            x = [a + b for a, b in zip(x, linear(mixed, self.out), strict=True)]
            hidden = [value.relu() for value in linear(x, self.up)]
            x = [a + b for a, b in zip(x, linear(hidden, self.down), strict=True)]
            yield linear(x, self.head)


# -- what both kinds of program share


@contextmanager
def batches(count: int, seed: int) -> Iterator[Iterator[list[int]]]:
    """Runs of tokens, prepared by another thread."""
    ready: queue.Queue[list[int] | None] = queue.Queue(maxsize=2)
    tokens = [VOCABULARY.index(letter) for letter in TEXT]

    def prepare() -> None:
        choice = random.Random(seed)
        for _ in range(count):
            start = choice.randrange(len(tokens) - BLOCK - 1)
            ready.put(tokens[start : start + BLOCK + 1])
        ready.put(None)

    thread = threading.Thread(target=prepare, name="batches")
    thread.start()
    try:
        yield iter(ready.get, None)
    finally:
        thread.join()


def descend(depth: int) -> int:
    """Recurse, and come back by an exception."""
    if depth == 0:
        raise StopIteration
    try:
        return descend(depth - 1)
    finally:
        len(str(depth))


def train_python(seed: int) -> list[float]:
    """Train with the engine above."""
    random.seed(seed)
    model = Model()
    losses = []
    with batches(80, seed) as data:
        for tokens in data:
            terms = [
                -softmax(scores)[target].log()
                for scores, target in zip(model(tokens[:-1]), tokens[1:], strict=True)
            ]
            loss = sum(terms, Value(0.0)) * (1 / len(terms))
            loss.backward()
            for weight in model.parameters():
                weight.data -= 0.1 * weight.grad
                weight.grad = 0.0
            losses.append(loss.data)
            with suppress(StopIteration):
                descend(300)
    return losses


def train_torch(seed: int) -> list[float]:
    """Train a transformer of PyTorch."""
    import torch  # the other kind of program does without
    from torch import nn

    class Gpt(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.token = nn.Embedding(len(VOCABULARY), 32)
            self.place = nn.Embedding(BLOCK, 32)
            layer = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True)
            self.layers = nn.TransformerEncoder(layer, 2)
            self.head = nn.Linear(32, len(VOCABULARY))
            self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(BLOCK))

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            x = self.token(tokens) + self.place(torch.arange(BLOCK))
            return self.head(self.layers(x, mask=self.mask, is_causal=True))

    torch.manual_seed(seed)
    model = Gpt()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    with batches(120, seed) as data:
        for tokens in data:
            batch = torch.tensor([tokens])
            scores = model(batch[:, :-1])
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def main() -> int:
    """Train, print the last loss, return the checksum of all losses as a status."""
    kind, seed = sys.argv[1], int(sys.argv[2])
    sys.setrecursionlimit(10_000)
    losses = {"python": train_python, "torch": train_torch}[kind](seed)
    print(losses[-1])
    return zlib.crc32(struct.pack(f"{len(losses)}d", *losses)) % 100


if __name__ == "__main__":
    sys.exit(main())
