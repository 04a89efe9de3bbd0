import torch
from torch import nn
from torch.nn import functional


class Encoder(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, width // 4, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(width // 4, width // 2, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(width // 2, width, 3, stride=2, padding=1),
            nn.ReLU(),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.layers(images)


class LinearHead(nn.Module):
    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.classifier = nn.Conv2d(width, classes, 1)

    def forward(self, features: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
        features = functional.interpolate(features, size=size, mode="bilinear")  # the problem
        return self.classifier(features)


class Segmenter(nn.Module):
    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.encoder = Encoder(width)
        self.head = LinearHead(width, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        height, width = images.shape[-2:]
        return self.head(self.encoder(images), (height, width))


def scenes(count: int, size: int, classes: int) -> tuple[torch.Tensor, torch.Tensor]:
    labels = torch.randint(0, classes, (count, size // 16, size // 16))
    labels = labels.repeat_interleave(16, 1).repeat_interleave(16, 2)
    images = torch.randn(count, 3, size, size) * 0.1
    return images + labels[:, None] / classes, labels


def main(steps: int = 30, batch: int = 4, size: int = 128, classes: int = 8) -> None:
    torch.manual_seed(0)
    images, labels = scenes(steps * batch, size, classes)
    model = Segmenter(128, classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss = torch.zeros(())
    for part, wanted in zip(images.split(batch), labels.split(batch), strict=True):
        loss = functional.cross_entropy(model(part), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
