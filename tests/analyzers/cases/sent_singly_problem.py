"""Trains on molecules; the loader's worker hands over the tensors of each molecule one by one."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

Molecule = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


class Molecules(Dataset[Molecule]):
    def __init__(self, count: int) -> None:
        self.sizes = torch.randint(10, 30, (count,)).tolist()

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, index: int) -> Molecule:
        size = self.sizes[index]
        bonds = torch.randint(0, size, (2, 2 * size))
        return torch.rand(size, 16), bonds, torch.rand(2 * size, 1), torch.rand(1)


def joined(molecules: list[Molecule]) -> tuple[torch.Tensor, ...]:
    """Return the atoms, bonds, lengths, energies and numbers of atoms of many molecules."""
    atoms, bonds, lengths, energies = zip(*molecules, strict=True)
    sizes = torch.tensor([len(each) for each in atoms])
    first = (sizes.cumsum(0) - sizes).tolist()
    moved = [ends + start for ends, start in zip(bonds, first, strict=True)]
    return (
        torch.cat(atoms),
        torch.cat(moved, 1),
        torch.cat(lengths),
        torch.cat(energies),
        sizes,
    )


class Energy(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(16, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(4))
        self.last = nn.Linear(width, 1)

    def forward(
        self, atoms: torch.Tensor, bonds: torch.Tensor, lengths: torch.Tensor, sizes: torch.Tensor
    ) -> torch.Tensor:
        state = self.first(atoms)
        for layer in self.layers:
            messages = layer(state).relu().index_select(0, bonds[0]) * lengths
            state = state.index_add(0, bonds[1], messages)
        molecule = torch.arange(len(sizes)).repeat_interleave(sizes)
        return torch.zeros(len(sizes)).index_add(0, molecule, self.last(state)[:, 0])


torch.manual_seed(0)
torch.set_num_threads(1)
model = Energy(256)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
loader = DataLoader(Molecules(1600), batch_size=64, collate_fn=list, num_workers=1)
for molecules in loader:  # the problem
    atoms, bonds, lengths, energies, sizes = joined(molecules)
    loss = (model(atoms, bonds, lengths, sizes) - energies).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
