"""Projects batches onto their four strongest directions, from a sketch of each batch."""

import torch


def strongest(values: torch.Tensor, number: int) -> torch.Tensor:
    _, _, directions = torch.svd_lowrank(values, q=number + 6, niter=3)
    return directions[:, :number].T


torch.manual_seed(0)
signal = torch.randn(600, 4) @ torch.randn(4, 256) * 5
projected = []
for _ in range(8):
    batch = signal + torch.randn(600, 256)
    basis = strongest(batch, 4)
    projected.append(batch @ basis.T)
