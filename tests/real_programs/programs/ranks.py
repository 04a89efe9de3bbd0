"""Data-parallel training on two ranks; one of them has longer sentences."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def batch(rank: int, step: int) -> torch.Tensor:
    length = 96 if rank == 1 else 32
    return torch.randn(8, length, 128, generator=torch.Generator().manual_seed(step))


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    layer = torch.nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, dropout=0.0)
    model = DistributedDataParallel(
        torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(40):
        loss = model(batch(rank, step)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if rank == 0:
        print(f"loss {loss.item():.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
