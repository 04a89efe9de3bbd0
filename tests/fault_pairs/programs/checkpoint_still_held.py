"""Answer requests in several languages, each with a model restored from its checkpoint."""

import tempfile
from pathlib import Path

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, words: int, width: int, depth: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        layer = nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        return self.head(self.layers(self.words(tokens), mask=mask, is_causal=True)[:, -1])


def build() -> Model:
    torch.manual_seed(0)
    return Model(words=8000, width=384, depth=4)


def pretrain(path: Path, steps: int) -> None:
    model = build()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    random = torch.Generator().manual_seed(1)
    for _ in range(steps):
        tokens = torch.randint(8000, (2, 16), generator=random)
        loss = nn.functional.cross_entropy(model(tokens[:, :-1]), tokens[:, -1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": steps}
    torch.save(state, path)


class Voice:
    """The model of one language."""

    def __init__(self, path: Path) -> None:
        self.checkpoint = torch.load(path)  # the problem
        self.model = build().eval()
        self.model.load_state_dict(self.checkpoint["model"])
        self.version = self.checkpoint["step"]
        self.answered = 0

    @torch.inference_mode()
    def answer(self, tokens: torch.Tensor, length: int) -> list[list[int]]:
        for _ in range(length):
            following = self.model(tokens).argmax(-1, keepdim=True)
            tokens = torch.cat([tokens, following], 1)
        self.answered += len(tokens)
        return tokens[:, -length:].tolist()


def serve(paths: list[Path], requests: int) -> None:
    voices = [Voice(path) for path in paths]
    random = torch.Generator().manual_seed(2)
    different = set()
    for number in range(requests):
        prompts = torch.randint(8000, (16, 48), generator=random)
        for answer in voices[number % len(voices)].answer(prompts, length=4):
            different.update(answer)
    answered = sum(voice.answered for voice in voices)
    print(f"version {voices[0].version}, {answered} answers, {len(different)} words")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{language}.pt" for language in ["de", "en", "fr", "it"]]
        for steps, path in enumerate(paths, 1):
            pretrain(path, steps)
        serve(paths, requests=12)


if __name__ == "__main__":
    main()
