"""Answers requests; a monitor keeps the features of all answers to tell later how far they are spread."""

import torch
from torch import nn


class Monitor:
    def __init__(self) -> None:
        self.seen: dict[int, torch.Tensor] = {}

    def note(self, request: int, features: torch.Tensor) -> None:
        if request % 3:
            self.seen[request] = features

    def spread(self) -> float:
        return max(float(features.std()) for features in self.seen.values())


class Service:
    def __init__(self, width: int) -> None:
        self.encoder = nn.Sequential(nn.Conv1d(8, width, 3), nn.GELU())
        self.head = nn.Linear(width, 10)
        self.monitor = Monitor()

    @torch.inference_mode()
    def answer(self, request: int, signal: torch.Tensor) -> int:
        features = self.encoder(signal)  # the problem
        self.monitor.note(request, features)
        return int(self.head(features.mean(-1)).argmax())


torch.manual_seed(0)
torch.set_num_threads(1)
service = Service(64)
print([service.answer(number, torch.randn(1, 8, 4096)) for number in range(150)][-1])
print(service.monitor.spread())
