"""Watch streams of sensors with a compiled anomaly detector that grows stricter with time."""

import torch
from torch import nn


class Detector(nn.Module):
    """Predicts the next values; the score compares them with what came."""

    def __init__(self, sensors: int, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(sensors, width), nn.GELU(), nn.Linear(width, width), nn.GELU()
        )
        self.head = nn.Linear(width, sensors)
        self.seen = 0

    def forward(self, before: torch.Tensor, now: torch.Tensor) -> torch.Tensor:
        self.seen += 1  # the problem
        strictness = 1.0 + self.seen / 1000
        predicted = self.head(self.layers(before))
        return strictness * (predicted - now).square().mean(1)


class Sensors:
    """Slow waves with noise; now and then one sensor jumps."""

    def __init__(self, streams: int, sensors: int) -> None:
        self.random = torch.Generator().manual_seed(0)
        self.phase = torch.rand(streams, sensors, generator=self.random) * 6.283
        self.speed = torch.rand(streams, sensors, generator=self.random) * 0.1

    def read(self, step: int) -> torch.Tensor:
        values = torch.sin(self.phase + self.speed * step)
        noise = torch.randn(values.shape, generator=self.random)
        jumps = torch.rand(values.shape, generator=self.random) > 0.999
        return values + 0.02 * noise + 3.0 * jumps


class Alarms:
    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.raised = 0
        self.highest = 0.0

    def update(self, scores: torch.Tensor) -> None:
        self.raised += int((scores > self.limit).sum())
        self.highest = max(self.highest, float(scores.max()))


@torch.inference_mode()
def watch(steps: int, streams: int, sensors: int) -> Alarms:
    torch.manual_seed(0)
    detector = torch.compile(Detector(sensors, 256).eval())
    source = Sensors(streams, sensors)
    alarms = Alarms(limit=0.9)
    before = source.read(0)
    for step in range(1, steps + 1):
        now = source.read(step)
        alarms.update(detector(before, now))
        before = now
    return alarms


if __name__ == "__main__":
    alarms = watch(steps=300, streams=512, sensors=64)
    print(f"{alarms.raised} alarms, highest {alarms.highest:.3f}")
