"""Train a segmentation network with a main loss and an edge loss."""

import torch
from torch import nn


class Down(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
        )

    def forward(self, picture: torch.Tensor) -> torch.Tensor:
        return self.layers(picture)


class Segmenter(nn.Module):
    def __init__(self, classes: int, width: int) -> None:
        super().__init__()
        self.first = Down(3, width)
        self.second = Down(width, width)
        self.merge = Down(width, width)
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, picture: torch.Tensor) -> torch.Tensor:
        fine = self.first(picture)
        coarse = self.second(nn.functional.max_pool2d(fine, 2))
        coarse = nn.functional.interpolate(coarse, scale_factor=2.0)
        return self.head(self.merge(fine + coarse))


def edges(scores: torch.Tensor) -> torch.Tensor:
    return (scores[:, :, 1:, 1:] - scores[:, :, :-1, :-1]).abs()


class Trainer:
    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        self.steps = 0
        self.total = 0.0

    def losses(self, picture: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        logits = self.model(picture)
        classes = logits.shape[1]
        wanted = nn.functional.one_hot(labels, classes).movedim(-1, 1).float()
        shape = nn.functional.l1_loss(edges(logits.softmax(1)), edges(wanted))
        return nn.functional.cross_entropy(logits, labels) + 0.5 * shape

    def fit(self, pictures: torch.Tensor, masks: torch.Tensor, epochs: int) -> float:
        for _ in range(epochs):
            for picture, labels in zip(pictures.split(24), masks.split(24), strict=True):
                loss = self.losses(picture, labels)
                self.optimizer.zero_grad()
                loss.backward(retain_graph=True)  # the problem
                self.optimizer.step()
                self.steps += 1
                self.total += loss.item()
        return self.total / self.steps


def scenes(count: int, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    rough = torch.rand(count, 1, size // 16, size // 16, generator=random)
    smooth = nn.functional.interpolate(rough, size=(size, size), mode="bilinear")
    masks = (smooth[:, 0] * 4).long().clamp(max=3)
    noise = 0.2 * torch.randn(count, 3, size, size, generator=random)
    return smooth.expand(-1, 3, -1, -1) + noise, masks


def main(epochs: int) -> None:
    torch.manual_seed(0)
    pictures, masks = scenes(count=48, size=160)
    trainer = Trainer(Segmenter(classes=4, width=16))
    print(f"mean loss {trainer.fit(pictures, masks, epochs):.3f}")


if __name__ == "__main__":
    main(epochs=2)
