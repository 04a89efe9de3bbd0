import torch
from torch import nn
from torch.nn import functional


class LabelSmoothing(nn.Module):
    def __init__(self, vocabulary: int, smoothing: float) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.smoothing = smoothing

    def forward(self, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        share = self.smoothing / self.vocabulary
        truth = torch.full_like(logits, share)
        truth.scatter_(1, target[:, None], 1.0 - self.smoothing + share)
        scores = functional.log_softmax(logits, dim=1)
        return functional.kl_div(scores, truth, reduction="batchmean")  # the problem


class Translator(nn.Module):
    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.encoder = nn.GRU(width, width, batch_first=True)
        self.decoder = nn.GRU(width, width, batch_first=True)
        self.generator = nn.Linear(width, vocabulary)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        _, state = self.encoder(self.embedding(source))
        hidden, _ = self.decoder(self.embedding(target), state)
        return self.generator(hidden)


def sentences(count: int, length: int, vocabulary: int) -> tuple[torch.Tensor, torch.Tensor]:
    source = torch.randint(2, vocabulary, (count, length))
    return source, source.flip(1)


def main(steps: int = 16, batch: int = 32, vocabulary: int = 12_000) -> None:
    torch.manual_seed(0)
    source, target = sentences(steps * batch, 33, vocabulary)
    model = Translator(vocabulary, 24)
    criterion = LabelSmoothing(vocabulary, 0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step, (words, wanted) in enumerate(
        zip(source.split(batch), target.split(batch), strict=True)
    ):
        logits = model(words, wanted[:, :-1])
        loss = criterion(logits.flatten(0, 1), wanted[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 4 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
