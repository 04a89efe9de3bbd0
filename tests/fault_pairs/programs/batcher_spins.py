"""Serve a small text classifier: a thread gathers requests into batches and answers them."""

import queue
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self, words: int, width: int, classes: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(width, classes)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(self.words(tokens)).mean(1))


@dataclass
class Request:
    tokens: torch.Tensor
    answer: Future[int] = field(default_factory=Future)


class Batcher(threading.Thread):
    def __init__(self, model: nn.Module, largest: int) -> None:
        super().__init__(daemon=True)
        self.model = model
        self.largest = largest
        self.waiting: queue.Queue[Request | None] = queue.Queue()

    def submit(self, tokens: torch.Tensor) -> Future[int]:
        request = Request(tokens)
        self.waiting.put(request)
        return request.answer

    def next_batch(self) -> list[Request] | None:
        batch: list[Request] = []
        while not batch:
            while len(batch) < self.largest:
                try:
                    request = self.waiting.get_nowait()  # the problem
                except queue.Empty:
                    break
                if request is None:
                    return None
                batch.append(request)
        return batch

    @torch.inference_mode()
    def run(self) -> None:
        while (batch := self.next_batch()) is not None:
            logits = self.model(torch.stack([request.tokens for request in batch]))
            for request, label in zip(batch, logits.argmax(1).tolist(), strict=True):
                request.answer.set_result(label)


def client(batcher: Batcher, requests: int) -> list[int]:
    random = torch.Generator().manual_seed(0)
    labels = []
    for _ in range(requests):
        answers = [batcher.submit(torch.randint(5000, (64,), generator=random)) for _ in range(4)]
        labels += [answer.result() for answer in answers]
        time.sleep(0.02)
    return labels


def main(requests: int) -> None:
    torch.manual_seed(0)
    batcher = Batcher(Classifier(5000, 128, 8).eval(), 8)
    batcher.start()
    labels = client(batcher, requests)
    batcher.waiting.put(None)
    batcher.join()
    print(f"{len(labels)} answers")


if __name__ == "__main__":
    main(requests=220)
