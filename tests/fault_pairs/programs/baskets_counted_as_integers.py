import torch
from torch import nn
from torch.nn import functional


def baskets(orders: int, items: int, size: int) -> torch.Tensor:
    popularity = 1.0 / torch.arange(1, items + 1)
    chosen = torch.multinomial(popularity.expand(orders, -1), size)
    return torch.zeros(orders, items, dtype=torch.bool).scatter_(1, chosen, 1)


def cooccurrence(incidence: torch.Tensor) -> torch.Tensor:
    bought = incidence.long()  # the problem
    counts = bought.T @ bought
    return counts.fill_diagonal_(0).float()


def pointwise_information(counts: torch.Tensor) -> torch.Tensor:
    total = counts.sum()
    expected = counts.sum(0, keepdim=True) * counts.sum(1, keepdim=True) / total
    return (counts / expected.clamp(min=1e-6)).clamp(min=1.0).log()


class ItemFactors(nn.Module):
    def __init__(self, items: int, width: int) -> None:
        super().__init__()
        self.left = nn.Parameter(0.1 * torch.randn(items, width))
        self.right = nn.Parameter(0.1 * torch.randn(items, width))

    def forward(self) -> torch.Tensor:
        return self.left @ self.right.T


def fit(model: ItemFactors, target: torch.Tensor, steps: int) -> float:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    loss = torch.zeros(())
    for _ in range(steps):
        loss = functional.mse_loss(model(), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main(weeks: int = 6, orders: int = 3000, items: int = 1500) -> None:
    torch.manual_seed(0)
    model = ItemFactors(items, 32)
    counts = torch.zeros(items, items)
    for week in range(weeks):
        counts = 0.9 * counts + cooccurrence(baskets(orders, items, 12))
        loss = fit(model, pointwise_information(counts), 5)
        print(f"week {week}: loss {loss:.4f}")


if __name__ == "__main__":
    main()
