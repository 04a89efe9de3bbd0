"""Projects batches onto their four strongest directions, from all singular vectors."""

import torch


def strongest(values: torch.Tensor, number: int) -> torch.Tensor:
    _, _, directions = torch.linalg.svd(values, full_matrices=False)  # the problem
    return directions[:number]


torch.manual_seed(0)
signal = torch.randn(600, 4) @ torch.randn(4, 256) * 5
projected = []
for _ in range(8):
    batch = signal + torch.randn(600, 256)
    basis = strongest(batch, 4)
    projected.append(batch @ basis.T)
