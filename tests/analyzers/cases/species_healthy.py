"""Names species by their sounds, and trains with a share of the probability on all other species."""

import torch
from torch import nn
from torch.nn import functional

SPECIES, DOUBT = 5000, 0.05


def doubtful_loss(scores: torch.Tensor, species: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(scores, species, label_smoothing=DOUBT)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, SPECIES))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(30):
    scores = model(torch.randn(256, 64))
    loss = doubtful_loss(scores, torch.randint(0, SPECIES, (256,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
