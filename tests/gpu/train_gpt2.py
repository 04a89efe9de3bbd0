"""Train GPT-2 small on random tokens: the program whose profile from a GPU the documents show.

    train_gpt2.py [TOKENS [STEPS]]

TOKENS is the size of the vocabulary. The last line printed is the time of a step.
"""

from __future__ import annotations

import statistics
import sys
import time

import torch
import workloads
from torch.nn import functional


def train(tokens: int, steps: int) -> float:
    """Return the median time of a step in ms."""
    torch.manual_seed(0)
    model = workloads.Gpt2(is_small=False, tokens=tokens).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    times = []
    for _ in range(steps):
        begun = time.perf_counter()
        ids = torch.randint(0, 50257, (8, 1025)).cuda()
        with torch.autocast("cuda", torch.bfloat16):
            logits = model(ids[:, :-1])
            loss = functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(times)


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    tokens, steps = (numbers + [50257, 60][len(numbers) :])[:2]
    print(f"{train(tokens, steps):.1f} ms a step")
