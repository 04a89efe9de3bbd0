import torch
from torch import nn


class Potential(nn.Module):
    def __init__(self, centres: int, width: int, cutoff: float) -> None:
        super().__init__()
        self.register_buffer("centres", torch.linspace(0.5, cutoff, centres))
        self.cutoff = cutoff
        self.net = nn.Sequential(
            nn.Linear(centres, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, 1),
        )

    def energy(self, positions: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
        first, second = pairs
        distance = (positions[first] - positions[second]).norm(dim=1)
        basis = torch.exp(-4.0 * (distance[:, None] - self.centres) ** 2)
        envelope = torch.relu(1.0 - distance / self.cutoff) ** 2
        repulsion = 0.1 / (distance**2 + 0.1)
        return ((0.01 * self.net(basis)[:, 0] + repulsion) * envelope).sum()

    def forward(
        self, positions: torch.Tensor, pairs: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        positions = positions.detach().requires_grad_()
        energy = self.energy(positions, pairs)
        (gradient,) = torch.autograd.grad(energy, positions, create_graph=True)  # the problem
        return energy.detach(), -gradient


def neighbours(positions: torch.Tensor, cutoff: float) -> torch.Tensor:
    near = torch.cdist(positions, positions) < cutoff
    return torch.triu(near, diagonal=1).nonzero().T


def simulate(model: Potential, start: torch.Tensor, steps: int, dt: float) -> list[float]:
    positions, velocities = start, torch.zeros_like(start)
    pairs = neighbours(positions, model.cutoff)
    _, forces = model(positions, pairs)
    energies = []
    for step in range(steps):
        velocities = velocities + 0.5 * dt * forces.detach()
        positions = positions + dt * velocities
        if step % 10 == 0:
            pairs = neighbours(positions, model.cutoff)
        energy, forces = model(positions, pairs)
        velocities = velocities + 0.5 * dt * forces.detach()
        if step % 20 == 19:
            energies.append(energy.item() + 0.5 * velocities.square().sum().item())
    return energies


def main(side: int = 12, steps: int = 60) -> None:
    torch.manual_seed(0)
    grid = torch.cartesian_prod(*[torch.arange(side, dtype=torch.float32)] * 3)
    model = Potential(24, 48, 2.6).eval().requires_grad_(requires_grad=False)
    energies = simulate(model, grid + 0.05 * torch.randn_like(grid), steps, 0.01)
    print(" ".join(f"{energy:.2f}" for energy in energies))


if __name__ == "__main__":
    main()
