"""Make speech of spectra, piece by piece, as a service that streams it."""

from collections.abc import Iterator

import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm


class Residual(nn.Module):
    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.first = weight_norm(
            nn.Conv1d(channels, channels, 3, padding=dilation, dilation=dilation)
        )
        self.second = weight_norm(nn.Conv1d(channels, channels, 3, padding=1))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        inner = self.first(nn.functional.leaky_relu(values, 0.1))
        return values + self.second(nn.functional.leaky_relu(inner, 0.1))


class Vocoder(nn.Module):
    def __init__(self, bands: int, channels: int) -> None:
        super().__init__()
        self.start = weight_norm(nn.Conv1d(bands, channels, 7, padding=3))
        self.blocks = nn.Sequential(*(Residual(channels, 3**depth) for depth in range(3)))
        self.end = weight_norm(nn.Conv1d(channels, 64, 7, padding=3))

    def forward(self, spectra: torch.Tensor) -> torch.Tensor:
        values = self.end(self.blocks(self.start(spectra)))
        return torch.tanh(values).transpose(1, 2).flatten(1)


def load(bands: int) -> Vocoder:
    return Vocoder(bands, 384).eval()  # the problem


class Stream:
    def __init__(self, vocoder: Vocoder, length: int) -> None:
        self.vocoder = vocoder
        self.length = length

    @torch.inference_mode()
    def speak(self, spectra: torch.Tensor) -> Iterator[torch.Tensor]:
        for piece in spectra.split(self.length, dim=-1):
            yield self.vocoder(piece)


def main(sentences: int) -> None:
    torch.manual_seed(0)
    stream = Stream(load(80), 8)
    loudest = torch.zeros(())
    for _ in range(sentences):
        for wave in stream.speak(torch.randn(1, 80, 160)):
            loudest = torch.maximum(loudest, wave.abs().max())
    print(f"loudest {loudest:.4f}")


if __name__ == "__main__":
    main(40)
