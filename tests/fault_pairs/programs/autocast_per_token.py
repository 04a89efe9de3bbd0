"""Generate tokens with a recurrent network under autocast."""

import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self, vocabulary: int, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, size)
        self.mix = nn.Linear(2 * size, size)
        self.deep = nn.Linear(size, size)
        self.head = nn.Linear(size, vocabulary)

    def forward(
        self, token: torch.Tensor, state: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        joined = torch.cat((self.embedding(token), state), -1)
        state = torch.tanh(self.deep(torch.tanh(self.mix(joined))))
        return self.head(state), state


def step(
    model: Cell, token: torch.Tensor, state: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits, state = model(token, state)  # the problem
    return logits.argmax(-1), state


@torch.no_grad()
def generate(model: Cell, size: int, length: int) -> list[int]:
    token, state = torch.zeros(1, dtype=torch.long), torch.zeros(1, size)
    tokens = []
    for _ in range(length):
        token, state = step(model, token, state)
        tokens.append(int(token))
    return tokens


def main() -> None:
    torch.manual_seed(0)
    model = Cell(2000, 1024).eval()
    print(len(generate(model, 1024, 400)))


if __name__ == "__main__":
    main()
