"""Generate text with a small transformer."""

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


class Attention(nn.Module):
    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.inputs = nn.Linear(size, 3 * size)
        self.output = nn.Linear(size, size)
        self.kept: tuple[torch.Tensor, torch.Tensor] | None = None

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        shape = (*tokens.shape[:2], self.heads, -1)
        query, key, value = (
            part.view(shape).transpose(1, 2) for part in self.inputs(tokens).chunk(3, -1)
        )
        if self.kept is not None:
            key, value = torch.cat((self.kept[0], key), 2), torch.cat((self.kept[1], value), 2)
        mixed = scaled_dot_product_attention(query, key, value, is_causal=query.shape[2] > 1)
        return self.output(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.attention = Attention(size, 4)
        self.mlp = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        tokens = tokens + self.attention(tokens)
        return tokens + self.mlp(tokens)


class Generator(nn.Module):
    def __init__(self, vocabulary: int, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, size)
        self.blocks = nn.Sequential(*(Block(size) for _ in range(4)))
        self.head = nn.Linear(size, vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.embedding(tokens))[:, -1])


@torch.inference_mode()
def generate(model: Generator, prompt: torch.Tensor, length: int) -> torch.Tensor:
    tokens = prompt
    for _ in range(length):
        following = model(tokens).argmax(-1, keepdim=True)  # the problem
        tokens = torch.cat((tokens, following), 1)
    return tokens


if __name__ == "__main__":
    torch.manual_seed(0)
    print(generate(Generator(500, 128).eval(), torch.randint(0, 500, (1, 16)), 200).shape)
