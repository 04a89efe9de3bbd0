"""Uses a normal distribution for each of the independent sensors."""

import torch
from torch import nn
from torch.distributions import Independent, Normal


class Sensors(nn.Module):
    """Predicts what sixteen sensors will show, and how sure it is of each."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(32, 64), nn.ReLU())
        self.mean, self.spread = nn.Linear(64, 16), nn.Linear(64, 16)

    def forward(self, past: torch.Tensor) -> Independent:
        hidden = self.hidden(past)
        spread = nn.functional.softplus(self.spread(hidden)) + 0.01
        return Independent(Normal(self.mean(hidden), spread.sqrt()), 1)


torch.manual_seed(0)
net = Sensors()
optimizer = torch.optim.SGD(net.parameters(), lr=0.001)
past, future = torch.randn(512, 32), torch.randn(512, 16)
for _ in range(40):
    loss = -net(past).log_prob(future).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
