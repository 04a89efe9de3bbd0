import torch
from torch import nn


class CRF(nn.Module):
    def __init__(self, tags: int) -> None:
        super().__init__()
        self.tags = tags
        self.transitions = nn.Parameter(0.1 * torch.randn(tags, tags))
        self.start = nn.Parameter(torch.zeros(tags))

    def partition(self, emissions: torch.Tensor) -> torch.Tensor:
        alpha = self.start + emissions[:, 0]
        for step in range(1, emissions.shape[1]):
            scores = []
            for tag in range(self.tags):  # the problem
                arriving = alpha + self.transitions[:, tag] + emissions[:, step, tag, None]
                scores.append(torch.logsumexp(arriving, dim=1))
            alpha = torch.stack(scores, dim=1)
        return torch.logsumexp(alpha, dim=1)

    def score(self, emissions: torch.Tensor, tags: torch.Tensor) -> torch.Tensor:
        unary = emissions.gather(2, tags[:, :, None]).squeeze(2).sum(1)
        return self.start[tags[:, 0]] + unary + self.transitions[tags[:, :-1], tags[:, 1:]].sum(1)

    def forward(self, emissions: torch.Tensor, tags: torch.Tensor) -> torch.Tensor:
        return (self.partition(emissions) - self.score(emissions, tags)).mean()


class Tagger(nn.Module):
    def __init__(self, vocabulary: int, tags: int, width: int = 64) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.encoder = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.emit = nn.Linear(2 * width, tags)
        self.crf = CRF(tags)

    def loss(self, words: torch.Tensor, tags: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.encoder(self.words(words))
        return self.crf(self.emit(hidden), tags)


def main(steps: int = 60, batch: int = 32, length: int = 40, tags: int = 17) -> None:
    torch.manual_seed(0)
    words = torch.randint(0, 3000, (steps, batch, length))
    labels = words % tags
    model = Tagger(3000, tags)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(steps):
        loss = model.loss(words[step], labels[step])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        if step % 20 == 19:
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
