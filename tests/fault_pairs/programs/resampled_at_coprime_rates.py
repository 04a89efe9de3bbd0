import math

import torch
from torch import nn
from torch.nn import functional


def sinc_kernel(old: int, new: int, width: int = 6) -> tuple[torch.Tensor, int]:
    base = 0.99 * min(old, new)
    margin = math.ceil(width * old / base)
    taps = torch.arange(-margin, margin + old) / old
    time = (taps - torch.arange(new)[:, None] / new) * base
    time = time.clamp(-width, width)
    window = torch.cos(time * math.pi / width / 2) ** 2
    return (torch.sinc(time) * window * base / old)[:, None], margin


def resample(wave: torch.Tensor, old: int, new: int) -> torch.Tensor:
    common = math.gcd(old, new)
    old, new = old // common, new // common
    kernel, margin = sinc_kernel(old, new)
    length = math.ceil(new * wave.shape[1] / old)
    padded = functional.pad(wave, (margin, margin + old))
    parts = functional.conv1d(padded[:, None], kernel, stride=old)
    return parts.transpose(1, 2).reshape(wave.shape[0], -1)[:, :length]


def change_speed(wave: torch.Tensor, rate: int, factor: float) -> torch.Tensor:
    source = round(rate * factor)  # the problem
    return resample(wave, source, rate)


class Keyword(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.first = nn.Conv1d(1, 32, 400, stride=160)
        self.second = nn.Conv1d(32, 64, 5, stride=2)
        self.head = nn.Linear(64, classes)

    def forward(self, wave: torch.Tensor) -> torch.Tensor:
        hidden = functional.relu(self.second(functional.relu(self.first(wave[:, None]))))
        return self.head(hidden.mean(2))


def train(model: nn.Module, waves: torch.Tensor, labels: torch.Tensor, rate: int) -> float:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    factors = torch.empty(len(waves)).uniform_(0.9, 1.1).tolist()
    loss = torch.zeros(())
    for batch, target, factor in zip(waves, labels, factors, strict=True):
        loss = functional.cross_entropy(model(change_speed(batch, rate, factor)), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main(steps: int = 6, batch: int = 16, rate: int = 16_000) -> None:
    torch.manual_seed(1)
    waves = torch.randn(steps, batch, rate)
    labels = torch.randint(0, 10, (steps, batch))
    print(f"loss {train(Keyword(10), waves, labels, rate):.3f}")


if __name__ == "__main__":
    main()
