"""Generation with mixed adapters: hooks scale the adapter outputs at each decoding step."""
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(0)

VOCAB = 400
DIM = 96
LAYERS = 6
NEW_TOKENS = 400
PROMPTS = 3


class AdapterLinear(nn.Module):
    def __init__(self, dim, adapters=3, rank=8):
        super().__init__()
        self.base = nn.Linear(dim, dim)
        self.down = nn.Parameter(torch.randn(adapters, dim, rank) * 0.05)
        self.up = nn.Parameter(torch.randn(adapters, rank, dim) * 0.05)
        self.scaling = None

    def forward(self, x):
        low = torch.einsum("bd,adr->bar", x, self.down)
        extra = torch.einsum("bar,ard->bad", low, self.up)
        return self.base(x) + torch.einsum("ba,bad->bd", self.scaling, extra)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.cell = nn.GRUCell(DIM, DIM)
        self.layers = nn.ModuleList(AdapterLinear(DIM) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(DIM)
        self.out = nn.Linear(DIM, VOCAB)

    def forward(self, token, state):
        state = self.cell(self.embed(token), state)
        h = state
        for layer in self.layers:
            h = h + torch.tanh(layer(h))
        return self.out(self.norm(h)), state


class MixedAdapters(nn.Module):
    """Chooses adapter weights from the current state and hands them to each layer."""

    def __init__(self, decoder, adapters=3):
        super().__init__()
        self.decoder = decoder
        self.router = nn.Sequential(nn.Linear(DIM, DIM), nn.Tanh(), nn.Linear(DIM, adapters))

    def step(self, token, state):
        weights = torch.softmax(self.router(state), dim=-1)

        def set_scaling(module, args):
            module.scaling = weights

        for layer in self.decoder.layers:
            layer.register_forward_pre_hook(set_scaling)  # the problem
        logits, state = self.decoder(token, state)
        return logits, state


@torch.no_grad()
def generate(model, prompts, new_tokens):
    state = torch.zeros(len(prompts), DIM)
    token = prompts
    score = torch.zeros(len(prompts))
    produced = []
    for _ in range(new_tokens):
        logits, state = model.step(token, state)
        log_prob = torch.log_softmax(logits, dim=-1)
        token = log_prob.argmax(-1)
        score += log_prob.gather(1, token[:, None])[:, 0]
        produced.append(token)
    return torch.stack(produced, 1), score / new_tokens


def main():
    model = MixedAdapters(Decoder()).eval()
    gen = torch.Generator().manual_seed(2)
    total = 0.0
    for request in range(PROMPTS):
        prompts = torch.randint(0, VOCAB, (16,), generator=gen)
        tokens, score = generate(model, prompts, NEW_TOKENS)
        total += float(score.mean())
        print(f"request {request} tokens {tuple(tokens.shape)}")
    print(f"final {total / PROMPTS:.4f}")


if __name__ == "__main__":
    main()
