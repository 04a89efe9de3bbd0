"""Batched greedy text generation with a cached decoder."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(0)

VOCAB = 2000
EOS = 1
DIM = 128
HEADS = 4
MAX_NEW = 300


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(DIM, DIM * 3)
        self.proj = nn.Linear(DIM, DIM)

    def forward(self, x, cache, position):
        n = x.size(0)
        q, k, v = self.qkv(x).view(n, 3, HEADS, DIM // HEADS).unbind(1)
        cache[0][:, :, position] = k
        cache[1][:, :, position] = v
        keys, values = cache[0][:, :, : position + 1], cache[1][:, :, : position + 1]
        out = F.scaled_dot_product_attention(q.unsqueeze(2), keys, values)
        return self.proj(out.reshape(n, DIM))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.attn = Attention()
        self.mlp = nn.Sequential(nn.Linear(DIM, DIM * 4), nn.GELU(), nn.Linear(DIM * 4, DIM))

    def forward(self, x, cache, position):
        x = x + self.attn(self.n1(x), cache, position)
        return x + self.mlp(self.n2(x))


class Decoder(nn.Module):
    def __init__(self, layers=4, length=512):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.pos = nn.Embedding(length, DIM)
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        self.out = nn.Linear(DIM, VOCAB)

    def new_cache(self, n, length):
        shape = (n, HEADS, length, DIM // HEADS)
        return [(torch.zeros(shape), torch.zeros(shape)) for _ in self.blocks]

    def forward(self, token, cache, position):
        x = self.embed(token) + self.pos.weight[position]
        for block, c in zip(self.blocks, cache):
            x = block(x, c, position)
        logits = self.out(x)
        logits[:, EOS] += 0.06 * position - 1.0
        return logits


@torch.no_grad()
def generate(model, prompts, max_new):
    n, length = prompts.shape
    cache = model.new_cache(n, length + max_new)
    for t in range(length):
        logits = model(prompts[:, t], cache, t)
    tokens = torch.full((n, max_new), EOS)
    finished = torch.zeros(n, dtype=torch.bool)
    for t in range(max_new):  # the problem
        token = logits.argmax(-1)
        token[finished] = EOS
        tokens[:, t] = token
        finished |= token == EOS
        logits = model(token, cache, length + t)
    return tokens


def lengths(tokens):
    return (tokens != EOS).sum(1)


def main():
    model = Decoder().eval()
    gen = torch.Generator().manual_seed(4)
    total, texts = 0, 0
    for request in range(8):
        prompts = torch.randint(2, VOCAB, (16, 8), generator=gen)
        produced = lengths(generate(model, prompts, MAX_NEW))
        total += int(produced.sum())
        texts += len(produced)
        print(f"request {request} longest {int(produced.max())}")
    print(f"final {total / texts:.3f}")


if __name__ == "__main__":
    main()
