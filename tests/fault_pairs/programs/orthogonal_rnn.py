"""Copy-memory task with a recurrent cell whose recurrent matrix is orthogonal."""
import torch
import torch.nn as nn
from torch.nn.utils import parametrizations

torch.set_num_threads(1)
torch.manual_seed(0)

SYMBOLS = 8
COPY = 8
DELAY = 60
BATCH = 64
STEPS = 12


class OrthogonalCell(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.inp = nn.Linear(inputs, hidden)
        self.rec = nn.Linear(hidden, hidden, bias=False)
        parametrizations.orthogonal(self.rec, orthogonal_map="matrix_exp")
        self.bias = nn.Parameter(torch.zeros(hidden))

    def forward(self, x, h):
        z = self.inp(x) + self.rec(h)  # the problem
        return torch.sign(z) * torch.relu(z.abs() + self.bias)


class CopyModel(nn.Module):
    def __init__(self, hidden=128):
        super().__init__()
        self.hidden = hidden
        self.embed = nn.Embedding(SYMBOLS + 2, 32)
        self.cell = OrthogonalCell(32, hidden)
        self.head = nn.Linear(hidden, SYMBOLS + 1)

    def forward(self, tokens):
        x = self.embed(tokens)
        h = x.new_zeros(tokens.size(0), self.hidden)
        outputs = []
        for t in range(tokens.size(1)):
            h = self.cell(x[:, t], h)
            outputs.append(self.head(h))
        return torch.stack(outputs, dim=1)


def make_batch(n, gen):
    seq = torch.randint(1, SYMBOLS + 1, (n, COPY), generator=gen)
    length = COPY + DELAY + COPY
    tokens = torch.zeros(n, length, dtype=torch.long)
    tokens[:, :COPY] = seq
    tokens[:, COPY + DELAY - 1] = SYMBOLS + 1
    target = torch.zeros(n, length, dtype=torch.long)
    target[:, -COPY:] = seq
    return tokens, target


def train_step(model, opt, tokens, target):
    logits = model(tokens)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    return loss.item()


def main():
    gen = torch.Generator().manual_seed(7)
    model = CopyModel()
    opt = torch.optim.SGD(model.parameters(), lr=0.004, momentum=0.9)
    last = 0.0
    for step in range(1, STEPS + 1):
        tokens, target = make_batch(BATCH, gen)
        last = train_step(model, opt, tokens, target)
        if step % 4 == 0:
            print(f"step {step} loss {last:.4f}")
    with torch.no_grad():
        w = model.cell.rec.weight
        drift = (w @ w.T - torch.eye(w.size(0))).abs().max()
    print(f"orthogonal {bool(drift < 1e-3)} final {last:.2f}")


if __name__ == "__main__":
    main()
