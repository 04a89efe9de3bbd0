"""Train a speech enhancer on dry speech that is given the echo of a room on the fly."""

import torch
from torch import nn
from torch.nn import functional


class Rooms:
    """Impulse responses: noise that fades, with a different speed for each room."""

    def __init__(self, count: int, length: int) -> None:
        random = torch.Generator().manual_seed(0)
        fade = torch.exp(-torch.arange(length) / torch.linspace(400, 3000, count)[:, None])
        responses = torch.randn(count, length, generator=random) * fade
        self.responses = responses / responses.norm(dim=1, keepdim=True)

    def pick(self, count: int, random: torch.Generator) -> torch.Tensor:
        return self.responses[torch.randint(len(self.responses), (count,), generator=random)]


def reverberate(speech: torch.Tensor, response: torch.Tensor) -> torch.Tensor:
    samples, taps = speech.shape[-1], response.shape[-1]
    padded = functional.pad(speech, (taps - 1, 0))
    kernel = response.flip(-1)[:, None]
    echo = functional.conv1d(padded[None], kernel, groups=len(speech))  # the problem
    return echo[0, :, :samples]


class Enhancer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.encode = nn.Conv1d(1, width, 32, stride=16, padding=8)
        self.middle = nn.Sequential(
            nn.ReLU(), nn.Conv1d(width, width, 5, padding=2), nn.ReLU(), nn.Conv1d(width, width, 1)
        )
        self.decode = nn.ConvTranspose1d(width, 1, 32, stride=16, padding=8)

    def forward(self, wave: torch.Tensor) -> torch.Tensor:
        code = self.encode(wave[:, None])
        return self.decode(code * self.middle(code).sigmoid())[:, 0]


def speech(count: int, samples: int, random: torch.Generator) -> torch.Tensor:
    pitch = 80 + 200 * torch.rand(count, 1, generator=random)
    times = torch.arange(samples) / 16000
    voice = torch.sin(6.283 * pitch * times) + 0.5 * torch.sin(12.566 * pitch * times)
    return voice * (1 + torch.sin(20 * times + pitch))


def train(steps: int, batch: int, samples: int) -> float:
    torch.manual_seed(0)
    random = torch.Generator().manual_seed(1)
    rooms = Rooms(40, 16000)
    model = Enhancer(64)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    total = 0.0
    for _ in range(steps):
        dry = speech(batch, samples, random)
        wet = reverberate(dry, rooms.pick(batch, random))
        loss = functional.l1_loss(model(wet), dry)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / steps


if __name__ == "__main__":
    print(f"mean loss {train(steps=24, batch=8, samples=32000):.3f}")
