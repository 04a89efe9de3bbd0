"""Summarize long texts with beam search over cached keys and values."""

import torch
from torch import nn
from torch.nn.functional import log_softmax, scaled_dot_product_attention

Cache = list[dict[str, torch.Tensor]]


class Layer(nn.Module):
    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.own = nn.Linear(size, 3 * size)
        self.own_out = nn.Linear(size, size)
        self.query = nn.Linear(size, size)
        self.text = nn.Linear(size, 2 * size)
        self.text_out = nn.Linear(size, size)
        self.inner = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size))

    def split(self, values: torch.Tensor) -> torch.Tensor:
        return values.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(
        self, values: torch.Tensor, cache: dict[str, torch.Tensor], at: int
    ) -> torch.Tensor:
        query, key, value = map(self.split, self.own(values).chunk(3, -1))
        cache["own_keys"][:, :, at : at + 1] = key
        cache["own_values"][:, :, at : at + 1] = value
        keys, held = cache["own_keys"][:, :, : at + 1], cache["own_values"][:, :, : at + 1]
        seen = scaled_dot_product_attention(query, keys, held)
        values = values + self.own_out(seen.transpose(1, 2).flatten(2))
        query = self.split(self.query(values))
        seen = scaled_dot_product_attention(query, cache["text_keys"], cache["text_values"])
        values = values + self.text_out(seen.transpose(1, 2).flatten(2))
        return values + self.inner(values)


class Summarizer(nn.Module):
    def __init__(self, words: int, size: int, layers: int) -> None:
        super().__init__()
        self.table = nn.Embedding(words, size)
        self.layers = nn.ModuleList(Layer(size, 8) for _ in range(layers))
        self.head = nn.Linear(size, words)

    def prepare(self, texts: torch.Tensor, length: int) -> Cache:
        cache = []
        for layer in self.layers:
            keys, values = map(layer.split, layer.text(texts).chunk(2, -1))
            empty = keys.new_zeros(len(keys), layer.heads, length, keys.shape[-1])
            parts = {"text_keys": keys.contiguous(), "text_values": values.contiguous()}
            cache.append({**parts, "own_keys": empty, "own_values": empty.clone()})
        return cache

    def step(self, words: torch.Tensor, cache: Cache, at: int) -> torch.Tensor:
        values = self.table(words)[:, None]
        for layer, parts in zip(self.layers, cache, strict=True):
            values = layer(values, parts, at)
        return log_softmax(self.head(values[:, 0]), -1)


def follow(cache: Cache, order: torch.Tensor) -> Cache:
    return [
        {name: part.index_select(0, order) for name, part in layer.items()}  # the problem
        for layer in cache
    ]


class BeamSearch:
    def __init__(self, model: Summarizer, beams: int, length: int) -> None:
        self.model, self.beams, self.length = model, beams, length

    @torch.inference_mode()
    def run(self, texts: torch.Tensor) -> torch.Tensor:
        cache = self.model.prepare(texts.repeat_interleave(self.beams, 0), self.length)
        first = torch.arange(len(texts))[:, None] * self.beams
        scores = torch.full((len(texts), self.beams), -1e9)
        scores[:, 0] = 0
        words = torch.zeros(len(texts) * self.beams, dtype=torch.long)
        for at in range(self.length):
            following = self.model.step(words, cache, at).view(len(texts), self.beams, -1)
            scores, best = (scores[..., None] + following).flatten(1).topk(self.beams)
            cache = follow(cache, (first + best // following.shape[-1]).flatten())
            words = (best % following.shape[-1]).flatten()
        return scores


def main(batches: int) -> None:
    torch.manual_seed(0)
    search = BeamSearch(Summarizer(2000, 256, 3).eval(), 5, 24)
    for _ in range(batches):
        print(f"best {search.run(torch.randn(4, 600, 256)).max():.3f}")


if __name__ == "__main__":
    main(2)
