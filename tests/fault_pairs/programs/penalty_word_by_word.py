"""Write stories with a small model that must not repeat itself."""

import torch
from torch import nn


class Writer(nn.Module):
    def __init__(self, words: int, width: int, layers: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.core = nn.LSTM(width, width, layers, batch_first=True)
        self.head = nn.Linear(width, words)

    def forward(
        self, tokens: torch.Tensor, state: tuple[torch.Tensor, torch.Tensor] | None
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        hidden, state = self.core(self.words(tokens), state)
        return self.head(hidden[:, -1]), state


class RepetitionPenalty:
    """Makes words less likely that are already in the text."""

    def __init__(self, strength: float) -> None:
        self.strength = strength

    def __call__(self, logits: torch.Tensor, texts: torch.Tensor) -> torch.Tensor:
        for row, text in enumerate(texts):
            for word in set(text.tolist()):
                if logits[row, word] < 0:  # the problem
                    logits[row, word] *= self.strength
                else:
                    logits[row, word] /= self.strength
        return logits


class Nucleus:
    def __init__(self, share: float, seed: int) -> None:
        self.share = share
        self.random = torch.Generator().manual_seed(seed)

    def __call__(self, logits: torch.Tensor) -> torch.Tensor:
        chances, words = logits.softmax(-1).sort(descending=True)
        chances[chances.cumsum(-1) - chances > self.share] = 0
        return words.gather(1, torch.multinomial(chances, 1, generator=self.random))


@torch.inference_mode()
def write(model: Writer, starts: torch.Tensor, length: int) -> torch.Tensor:
    penalty, nucleus = RepetitionPenalty(1.3), Nucleus(0.9, seed=0)
    texts, tokens, state = starts, starts, None
    for _ in range(length):
        logits, state = model(tokens, state)
        tokens = nucleus(penalty(logits, texts))
        texts = torch.cat([texts, tokens], 1)
    return texts


def main(stories: int, length: int) -> None:
    torch.manual_seed(0)
    model = Writer(words=4000, width=256, layers=2).eval()
    starts = torch.randint(4000, (stories, 12), generator=torch.Generator().manual_seed(1))
    texts = write(model, starts, length)
    different = sum(len(set(text)) for text in texts.tolist())
    print(f"{different} different of {texts.numel()} words")


if __name__ == "__main__":
    main(stories=4, length=300)
