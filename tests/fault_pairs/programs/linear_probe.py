"""Linear probing: a small head is trained on top of a pretrained convolutional encoder."""
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(0)

CLASSES = 6
EPOCHS = 3
BATCH = 32
IMAGES = 384


class Block(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(cout)
        self.skip = nn.Conv2d(cin, cout, 1, stride, bias=False)

    def forward(self, x):
        h = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(h)) + self.skip(x))


class Encoder(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, 1, 1)
        self.blocks = nn.Sequential(
            Block(width, width, 1),
            Block(width, width * 2, 2),
            Block(width * 2, width * 4, 2),
        )

    def forward(self, x):
        return self.blocks(self.stem(x)).mean(dim=(2, 3))


class Probe(nn.Module):
    def __init__(self, encoder, dim, classes):
        super().__init__()
        self.encoder = encoder
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, classes))

    def forward(self, x):
        return self.head(self.encoder(x))


def textures(n, side=40):
    gen = torch.Generator().manual_seed(3)
    labels = torch.randint(0, CLASSES, (n,), generator=gen)
    axis = torch.linspace(0, 6.28, side)
    yy, xx = torch.meshgrid(axis, axis, indexing="ij")
    images = torch.empty(n, 3, side, side)
    for i, c in enumerate(labels.tolist()):
        wave = torch.sin((c + 1) * xx + c * yy)
        images[i] = wave + 0.5 * torch.randn(3, side, side, generator=gen)
    return images, labels


def pretrained_encoder():
    encoder = Encoder()
    encoder.eval()
    return encoder


def run_epoch(model, opt, images, labels, order):
    total = 0.0
    for idx in order.split(BATCH):
        loss = nn.functional.cross_entropy(model(images[idx]), labels[idx])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        total += loss.item() * len(idx)
    return total / len(order)


def main():
    images, labels = textures(IMAGES)
    model = Probe(pretrained_encoder(), 128, CLASSES)
    opt = torch.optim.AdamW(model.head.parameters(), lr=3e-2)  # the problem
    gen = torch.Generator().manual_seed(5)
    for epoch in range(EPOCHS):
        order = torch.randperm(IMAGES, generator=gen)
        mean = run_epoch(model, opt, images, labels, order)
        print(f"epoch {epoch} loss {mean:.4f}")
    print(f"final {mean:.3f}")


if __name__ == "__main__":
    main()
