"""Skip-gram style item embeddings learnt from shopping sessions."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(0)

ITEMS = 150_000
DIM = 64
STEPS = 150
BATCH = 512
NEGATIVES = 5


class Sessions:
    """Item pairs bought together: the partner lies near the anchor."""

    def __init__(self, items, seed=0):
        self.items = items
        self.gen = torch.Generator().manual_seed(seed)

    def pairs(self, n):
        anchor = torch.randint(0, self.items, (n,), generator=self.gen)
        shift = torch.randint(1, 20, (n,), generator=self.gen)
        partner = (anchor + shift) % self.items
        negative = torch.randint(0, self.items, (n, NEGATIVES), generator=self.gen)
        return anchor, partner, negative


class ItemModel(nn.Module):
    def __init__(self, items, dim):
        super().__init__()
        self.anchor = nn.Embedding(items, dim)
        self.context = nn.Embedding(items, dim)
        nn.init.uniform_(self.anchor.weight, -0.1, 0.1)
        nn.init.uniform_(self.context.weight, -0.1, 0.1)

    def forward(self, anchor, partner, negative):
        a = self.anchor(anchor)  # the problem
        good = (a * self.context(partner)).sum(-1)
        bad = torch.einsum("bd,bnd->bn", a, self.context(negative))
        return -(F.logsigmoid(good).mean() + F.logsigmoid(-bad).mean())


def train(model, data, steps):
    opt = torch.optim.SGD(model.parameters(), lr=5.0)
    running = 0.0
    for step in range(1, steps + 1):
        loss = model(*data.pairs(BATCH))
        opt.zero_grad()
        loss.backward()
        opt.step()
        running += loss.item()
        if step % 50 == 0:
            print(f"step {step} loss {running / step:.4f}")
    return running / steps


@torch.no_grad()
def nearest(model, item, k=5):
    w = F.normalize(model.anchor.weight, dim=1)
    return torch.topk(w @ w[item], k).indices.tolist()


def main():
    model = ItemModel(ITEMS, DIM)
    final = train(model, Sessions(ITEMS), STEPS)
    print(nearest(model, 17)[:1], f"final {final:.4f}")


if __name__ == "__main__":
    main()
