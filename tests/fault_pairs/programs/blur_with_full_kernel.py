import torch
from torch import nn
from torch.nn import functional


class GaussianBlur(nn.Module):
    def __init__(self, size: int, sigma: float) -> None:
        super().__init__()
        at = torch.arange(size) - size // 2
        line = torch.softmax(-(at**2) / (2 * sigma**2), dim=0)
        self.register_buffer("line", line)
        self.margin = size // 2

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        channels = images.shape[1]
        padded = functional.pad(images, (self.margin,) * 4, mode="reflect")
        kernel = torch.outer(self.line, self.line).expand(channels, 1, -1, -1)
        return functional.conv2d(padded, kernel, groups=channels)  # the problem


class AnomalyMap(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, width, 7, stride=4, padding=3),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1),
        )
        self.blur = GaussianBlur(33, 4.0)
        self.register_buffer("mean", torch.zeros(width, 1, 1))

    def calibrate(self, images: torch.Tensor) -> None:
        self.mean = self.features(images).mean((0, 2, 3))[:, None, None]

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        distance = (self.features(images) - self.mean).norm(dim=1, keepdim=True)
        size = images.shape[-2:]
        return self.blur(functional.interpolate(distance, size=size, mode="bilinear"))


@torch.inference_mode()
def scores(model: AnomalyMap, images: torch.Tensor, batch: int) -> torch.Tensor:
    return torch.cat([model(part).amax((1, 2, 3)) for part in images.split(batch)])


def main(count: int = 192, size: int = 256) -> None:
    torch.manual_seed(0)
    images = torch.rand(count, 3, size, size)
    images[::8, :, 100:120, 100:120] = 1.0
    model = AnomalyMap(24).eval()
    with torch.inference_mode():
        model.calibrate(images[1:8])
    found = scores(model, images, 8)
    print(f"anomalies {sorted(found.topk(count // 8).indices.tolist())}")


if __name__ == "__main__":
    main()
