"""Masked-token pretraining of a small encoder on synthetic sentences."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(0)

VOCAB = 12000
MASK_ID = 3
IGNORE = -100
SEQ = 64
BATCH = 16
STEPS = 24


class MarkovText:
    """Generates sentences in which each token depends on the one before."""

    def __init__(self, vocab, seed=0):
        self.gen = torch.Generator().manual_seed(seed)
        self.vocab = vocab
        self.next = torch.randint(10, vocab, (vocab, 4), generator=self.gen)

    def batch(self, n, length):
        out = torch.empty(n, length, dtype=torch.long)
        cur = torch.randint(10, self.vocab, (n,), generator=self.gen)
        for t in range(length):
            out[:, t] = cur
            pick = torch.randint(0, 4, (n,), generator=self.gen)
            cur = self.next[cur, pick]
        return out


def mask_tokens(tokens, gen, prob=0.15):
    labels = tokens.clone()
    chosen = torch.rand(tokens.shape, generator=gen) < prob
    labels[~chosen] = IGNORE
    inputs = tokens.clone()
    inputs[chosen] = MASK_ID
    return inputs, labels


class Encoder(nn.Module):
    def __init__(self, vocab, dim=128, heads=4, layers=2):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(SEQ, dim)
        layer = nn.TransformerEncoderLayer(dim, heads, dim * 4, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, layers)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        pos = torch.arange(x.size(1))
        h = self.tok(x) + self.pos(pos)
        return self.norm(self.body(h))


class MaskedLM(nn.Module):
    def __init__(self, vocab, dim=128):
        super().__init__()
        self.encoder = Encoder(vocab, dim)
        self.transform = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.LayerNorm(dim))
        self.decoder = nn.Linear(dim, vocab)

    def forward(self, inputs, labels):
        hidden = self.encoder(inputs)
        logits = self.decoder(self.transform(hidden))  # the problem
        return F.cross_entropy(logits.view(-1, VOCAB), labels.view(-1), ignore_index=IGNORE)


def main():
    corpus = MarkovText(VOCAB)
    gen = torch.Generator().manual_seed(1)
    model = MaskedLM(VOCAB)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    total = 0.0
    for step in range(1, STEPS + 1):
        tokens = corpus.batch(BATCH, SEQ)
        inputs, labels = mask_tokens(tokens, gen)
        loss = model(inputs, labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
        if step % 8 == 0:
            print(f"step {step} mean loss {total / step:.4f}")
    print(f"final {total / STEPS:.4f}")


if __name__ == "__main__":
    main()
