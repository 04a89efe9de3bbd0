"""A scoring service: requests go through a worker thread that runs the model."""
import queue
import threading
import time

import numpy as np
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(0)

REQUESTS = 90
FEATURES = 256


class Scorer(nn.Module):
    def __init__(self, width=768):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(FEATURES, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1)
        )

    def forward(self, x):
        return torch.sigmoid(self.net(x))[:, 0]


class Service:
    """Clients call score(); one worker thread takes the requests in order."""

    def __init__(self, model):
        self.model = model.eval()
        self.pending = queue.Queue()
        self.results = {}
        self.running = True
        self.worker = threading.Thread(target=self._work, daemon=True)
        self.worker.start()

    def _work(self):
        while self.running:
            try:
                ticket, rows, ready = self.pending.get(timeout=1.0)
            except queue.Empty:
                continue
            with torch.no_grad():
                self.results[ticket] = self.model(torch.from_numpy(rows)).numpy()
            ready.set()

    def score(self, ticket, rows):
        ready = threading.Event()
        self.pending.put((ticket, rows, ready))
        while ticket not in self.results:
            time.sleep(0.1)  # the problem
        return self.results.pop(ticket)

    def close(self):
        self.running = False
        self.worker.join()


class Client:
    """Searches for a good input: each question depends on the previous answer."""

    def __init__(self, service, seed=0):
        self.service = service
        self.rng = np.random.default_rng(seed)
        self.best = self.rng.standard_normal((1, FEATURES)).astype(np.float32)
        self.value = 0.0

    def propose(self, n=384):
        step = self.rng.standard_normal((n, FEATURES)).astype(np.float32)
        return self.best + 0.2 * step

    def round(self, ticket):
        rows = self.propose()
        scores = self.service.score(ticket, rows)
        top = int(scores.argmax())
        if scores[top] > self.value:
            self.value = float(scores[top])
            self.best = rows[top : top + 1]


def main():
    service = Service(Scorer())
    client = Client(service)
    for ticket in range(REQUESTS):
        client.round(ticket)
        if (ticket + 1) % 30 == 0:
            print(f"round {ticket + 1} best {client.value:.4f}")
    service.close()
    print(f"final {client.value:.4f}")


if __name__ == "__main__":
    main()
