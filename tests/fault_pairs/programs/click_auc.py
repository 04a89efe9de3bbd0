"""Click prediction with a running ROC-AUC reported for every epoch."""
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(0)

ROWS = 60_000
FIELDS = 40
BATCH = 128


class BinaryAUROC:
    """Collects scores and labels; the area is taken over all that was collected."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.scores, self.labels = [], []

    def update(self, scores, labels):
        self.scores.append(scores.detach())
        self.labels.append(labels.detach())

    def compute(self):
        scores = torch.cat(self.scores)
        labels = torch.cat(self.labels).double()
        order = scores.argsort(stable=True)
        ranked = labels[order]
        ranks = torch.arange(1, len(ranked) + 1, dtype=torch.double)
        pos = ranked.sum()
        neg = len(ranked) - pos
        area = (ranks * ranked).sum() - pos * (pos + 1) / 2
        return float(area / (pos * neg))

    def __call__(self, scores, labels):
        self.update(scores, labels)
        return self.compute()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(FIELDS, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, x):
        return self.layers(x)[:, 0]


class Trainer:
    def __init__(self, model, lr=0.05):
        self.model = model
        self.opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.metric = BinaryAUROC()
        self.history = []

    def training_step(self, x, y):
        logits = self.model(x)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.metric(torch.sigmoid(logits), y)  # the problem
        return loss.item()

    def fit(self, x, y, epochs):
        for epoch in range(epochs):
            self.metric.reset()
            total, batches = 0.0, 0
            for xb, yb in zip(x.split(BATCH), y.split(BATCH)):
                total += self.training_step(xb, yb)
                batches += 1
            self.history.append(self.metric.compute())
            print(f"epoch {epoch} loss {total / batches:.4f} auc {self.history[-1]:.4f}")


def main():
    gen = torch.Generator().manual_seed(0)
    x = torch.randn(ROWS, FIELDS, generator=gen)
    weight = torch.randn(FIELDS, generator=gen)
    chance = torch.sigmoid(x @ weight * 0.4 + (x[:, 0] * x[:, 1]))
    y = (torch.rand(ROWS, generator=gen) < chance).float()
    trainer = Trainer(Net())
    trainer.fit(x, y, 4)
    print(f"final {trainer.history[-1]:.4f}")


if __name__ == "__main__":
    main()
