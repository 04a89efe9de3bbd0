"""Answer requests with a model whose weights are stored in bfloat16."""

import torch
from torch import nn


class CompactLinear(nn.Module):
    """A linear layer that keeps its weight in bfloat16 and computes in float32."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        weight = torch.randn(outputs, inputs) / inputs**0.5
        self.register_buffer("weight", weight.to(torch.bfloat16))

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(batch, self.weight.float())  # the problem


class Model(nn.Module):
    def __init__(self, size: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(CompactLinear(size, size) for _ in range(layers))

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            batch = torch.relu(layer(batch))
        return batch


@torch.inference_mode()
def serve(model: Model, requests: int, size: int) -> float:
    answer = 0.0
    for _ in range(requests):
        answer += model(torch.randn(1, size)).sum().item()
    return answer


if __name__ == "__main__":
    torch.manual_seed(0)
    print(serve(Model(1024, 8), 300, 1024))
