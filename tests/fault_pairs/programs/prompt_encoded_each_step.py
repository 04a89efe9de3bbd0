"""Sample motions from a text-conditioned diffusion model."""

import torch
from torch import nn


class TextEncoder(nn.Module):
    def __init__(self, words: int, width: int, depth: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.encoder(self.words(tokens))


class Denoiser(nn.Module):
    def __init__(self, joints: int, width: int, depth: int) -> None:
        super().__init__()
        self.inlet = nn.Linear(joints, width)
        self.time = nn.Sequential(nn.Linear(1, width), nn.SiLU(), nn.Linear(width, width))
        layer = nn.TransformerDecoderLayer(width, 4, 2 * width, batch_first=True, norm_first=True)
        self.layers = nn.TransformerDecoder(layer, depth)
        self.outlet = nn.Linear(width, joints)

    def forward(self, motion: torch.Tensor, time: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        hidden = self.inlet(motion) + self.time(time[None, None])
        return self.outlet(self.layers(hidden, text))


class Sampler:
    def __init__(self, encoder: TextEncoder, denoiser: Denoiser, steps: int) -> None:
        self.encoder = encoder
        self.denoiser = denoiser
        self.times = torch.linspace(1, 0, steps + 1)

    def denoise(
        self, motion: torch.Tensor, time: torch.Tensor, tokens: torch.Tensor
    ) -> torch.Tensor:
        text = self.encoder(tokens)  # the problem
        return self.denoiser(motion, time[None], text)

    @torch.inference_mode()
    def sample(self, tokens: torch.Tensor, frames: int, joints: int) -> torch.Tensor:
        random = torch.Generator().manual_seed(0)
        motion = torch.randn(len(tokens), frames, joints, generator=random)
        for now, then in zip(self.times[:-1], self.times[1:], strict=True):
            motion = motion + (now - then) * self.denoise(motion, now, tokens)
        return motion


def prompts(count: int, words: int, length: int) -> torch.Tensor:
    return torch.randint(words, (count, length), generator=torch.Generator().manual_seed(1))


def main(batches: int, steps: int) -> None:
    torch.manual_seed(0)
    encoder = TextEncoder(words=8000, width=192, depth=4).eval()
    denoiser = Denoiser(joints=66, width=192, depth=4).eval()
    sampler = Sampler(encoder, denoiser, steps)
    lengths = []
    for tokens in prompts(4 * batches, 8000, 77).split(4):
        motion = sampler.sample(tokens, frames=60, joints=66)
        lengths.append(motion.norm().item())
    print(f"mean length {sum(lengths) / len(lengths):.2f}")


if __name__ == "__main__":
    main(batches=4, steps=40)
