"""Stream the answers of a small language model token by token, with stop words."""

from collections.abc import Iterator

import torch
from torch import nn


class Tokenizer:
    """Byte-level pieces: a token is one to four bytes, a character may span two tokens."""

    def __init__(self, words: int) -> None:
        random = torch.Generator().manual_seed(0)
        letters = "abcdefghijklmnopqrstuvwxyz      äöüéß".encode()
        starts = torch.randint(len(letters) - 4, (words,), generator=random).tolist()
        sizes = torch.randint(1, 5, (words,), generator=random).tolist()
        self.pieces = [letters[a : a + n] for a, n in zip(starts, sizes, strict=True)]

    def piece(self, token: int) -> bytes:
        return self.pieces[token]

    def decode(self, tokens: list[int]) -> str:
        return b"".join(self.piece(token) for token in tokens).decode(errors="ignore")


class Model(nn.Module):
    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.cell = nn.GRUCell(width, width)
        self.head = nn.Linear(width, words)

    def forward(
        self, token: torch.Tensor, state: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        state = self.cell(self.words(token), state)
        return self.head(state), state


@torch.inference_mode()
def generate(model: Model, prompt: int, length: int, width: int) -> Iterator[int]:
    random = torch.Generator().manual_seed(prompt)
    token, state = torch.tensor([prompt]), torch.zeros(1, width)
    for _ in range(length):
        logits, state = model(token, state)
        token = torch.multinomial(logits.softmax(-1), 1, generator=random)[0]
        yield int(token)


class Stream:
    """Turns tokens into pieces of text for the client; ends at a stop word."""

    def __init__(self, tokenizer: Tokenizer, stops: list[str]) -> None:
        self.tokenizer = tokenizer
        self.stops = stops
        self.tokens: list[int] = []
        self.text = ""

    def push(self, token: int) -> str:
        self.tokens.append(token)
        text = self.tokenizer.decode(self.tokens)  # the problem
        fresh = text[len(self.text) :]
        self.text = text
        return fresh

    def stopped(self, fresh: str) -> bool:
        tail = self.text[-len(fresh) - 16 :]
        return any(stop in tail for stop in self.stops)


def main(answers: int, length: int) -> None:
    torch.manual_seed(0)
    tokenizer = Tokenizer(2000)
    model = Model(2000, 128).eval()
    sent = 0
    for prompt in range(answers):
        stream = Stream(tokenizer, ["<end>", "user:"])
        for token in generate(model, prompt, length, 128):
            fresh = stream.push(token)
            sent += len(fresh)
            if stream.stopped(fresh):
                break
    print(f"{sent} characters sent")


if __name__ == "__main__":
    main(answers=4, length=3300)
