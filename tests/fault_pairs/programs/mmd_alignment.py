"""Aligns two feature clouds with a kernel distance (maximum mean discrepancy)."""
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(0)

DIM = 64
BATCH = 768
STEPS = 8
BANDWIDTHS = (0.5, 1.0, 2.0, 4.0)


class Mapper(nn.Module):
    def __init__(self, dim, hidden=256):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, dim))

    def forward(self, x):
        return x + self.net(x)


class Domains:
    """Source and target batches that differ by a rotation and a shift."""

    def __init__(self, dim, seed=0):
        self.gen = torch.Generator().manual_seed(seed)
        self.dim = dim
        self.rotation = torch.linalg.qr(torch.randn(dim, dim, generator=self.gen)).Q
        self.shift = torch.randn(dim, generator=self.gen)

    def source(self, n):
        return torch.randn(n, self.dim, generator=self.gen)

    def target(self, n):
        x = torch.randn(n, self.dim, generator=self.gen) * torch.linspace(0.5, 1.5, self.dim)
        return x @ self.rotation + self.shift


def squared_distances(a, b):
    diff = a.unsqueeze(1) - b.unsqueeze(0)
    return diff.pow(2).sum(-1)  # the problem


def kernel_mean(a, b, scale):
    d2 = squared_distances(a, b) / scale
    return sum(torch.exp(-d2 / (2 * s)) for s in BANDWIDTHS).mean()


def mmd(x, y):
    scale = float(x.size(1)) * 2
    return kernel_mean(x, x, scale) + kernel_mean(y, y, scale) - 2 * kernel_mean(x, y, scale)


def main():
    data = Domains(DIM)
    model = Mapper(DIM)
    opt = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
    first = last = None
    for step in range(STEPS):
        x = model(data.source(BATCH))
        y = data.target(BATCH)
        loss = mmd(x, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        last = loss.item()
        first = last if first is None else first
        print(f"step {step} mmd {last:.4f}")
    print(f"first {first:.3f} final {last:.3f}")


if __name__ == "__main__":
    main()
