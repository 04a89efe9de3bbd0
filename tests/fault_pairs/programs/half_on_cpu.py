"""Follow a signal with a recurrent network, one sample after another."""

import torch
from torch import nn


class Reservoir(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("mix", torch.randn(size, size) / size**0.5)
        self.register_buffer("read", torch.randn(size))

    def forward(self, sample: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        driven = self.mix @ state  # the problem
        return torch.tanh(driven + sample * self.read)


class Follower:
    def __init__(self, size: int, kind: torch.dtype) -> None:
        self.model = Reservoir(size).to(kind)
        self.state = torch.zeros(size, dtype=kind)

    @torch.inference_mode()
    def follow(self, signal: torch.Tensor) -> list[float]:
        answers = []
        for sample in signal.to(self.state.dtype):
            self.state = self.model(sample, self.state)
            answers.append(self.state[0].item())
        return answers


def main(size: int, length: int) -> None:
    torch.manual_seed(0)
    follower = Follower(size, torch.float16)
    print(sum(follower.follow(torch.randn(length))))


if __name__ == "__main__":
    main(1024, 3000)
