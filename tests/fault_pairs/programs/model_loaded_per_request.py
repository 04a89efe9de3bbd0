"""Answer requests with a model whose weights lie in a file."""

import json
import tempfile
from pathlib import Path

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self, words: int, size: int, classes: int) -> None:
        super().__init__()
        self.vectors = nn.EmbeddingBag(words, size)
        self.layers = nn.Sequential(nn.Linear(size, size), nn.ReLU(), nn.Linear(size, classes))

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.layers(self.vectors(words))


class Application:
    labels = ("sport", "news", "music", "food")

    def __init__(self, weights: Path, words: int, size: int) -> None:
        self.weights = weights
        self.words = words
        self.size = size

    def model(self) -> Classifier:
        model = Classifier(self.words, self.size, len(self.labels))
        model.load_state_dict(torch.load(self.weights, weights_only=True))
        return model.eval()

    def encode(self, text: str) -> torch.Tensor:
        return torch.tensor([[sum(map(ord, word)) % self.words for word in text.split()]])

    @torch.inference_mode()
    def handle(self, body: str) -> str:
        request = json.loads(body)
        model = self.model()  # the problem
        chances = model(self.encode(request["text"])).softmax(-1)[0]
        best = int(chances.argmax())
        return json.dumps({"id": request["id"], "label": self.labels[best]})


def requests(count: int) -> list[str]:
    words = ["goal", "song", "bread", "vote", "drum", "team", "law", "salt"]
    return [
        json.dumps({"id": number, "text": " ".join(words[number % 7 :] * 3)})
        for number in range(count)
    ]


def main(count: int) -> None:
    torch.manual_seed(0)
    words, size = 20_000, 128
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "weights.pt"
        torch.save(Classifier(words, size, 4).state_dict(), weights)
        application = Application(weights, words, size)
        answers = [json.loads(application.handle(body)) for body in requests(count)]
    print({label: sum(one["label"] == label for one in answers) for label in Application.labels})


if __name__ == "__main__":
    main(200)
