"""Encode requests with distance-biased causal attention."""

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


def causal_bias(length: int, heads: int) -> torch.Tensor:
    position = torch.arange(length)
    distance = (position[:, None] - position[None]).float()  # the problem
    slopes = 2.0 ** -torch.arange(1, heads + 1)
    bias = -slopes[:, None, None] * distance.abs()
    return bias.masked_fill(distance < 0, -torch.inf)


class Attention(nn.Module):
    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.inputs = nn.Linear(size, 3 * size)
        self.output = nn.Linear(size, size)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        shape = (*tokens.shape[:2], self.heads, -1)
        query, key, value = (
            part.view(shape).transpose(1, 2) for part in self.inputs(tokens).chunk(3, -1)
        )
        bias = causal_bias(tokens.shape[1], self.heads)
        mixed = scaled_dot_product_attention(query, key, value, attn_mask=bias[None])
        return self.output(mixed.transpose(1, 2).flatten(2))


class Model(nn.Module):
    def __init__(self, size: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Attention(size, 8) for _ in range(layers))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            tokens = tokens + layer(tokens)
        return tokens


@torch.inference_mode()
def encode(requests: int) -> float:
    model = Model(64, 6).eval()
    total = 0.0
    for _ in range(requests):
        total += model(torch.randn(1, 384, 64)).mean().item()
    return total


if __name__ == "__main__":
    torch.manual_seed(0)
    print(encode(60))
