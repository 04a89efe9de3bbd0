"""Profile a part of a program from inside it: `profile`, `scope` and `step`.

The profile is written when the `with` block ends; `deepcontext report out.dcprof` shows it.
"""

from __future__ import annotations

import argparse

import torch
from torch import nn

import deepcontext


def main() -> None:
    parser = argparse.ArgumentParser(description="Profile a training loop from inside.")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--output", default="out.dcprof", help="where the profile is written")
    options = parser.parse_args()

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    inputs = torch.randn(128, 64)
    targets = inputs.square().mean(dim=1, keepdim=True)

    with deepcontext.profile(options.output):
        for _ in range(options.steps):
            with deepcontext.scope("augment"):
                noisy = inputs + 0.1 * torch.randn_like(inputs)
            loss = nn.functional.mse_loss(model(noisy), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            deepcontext.step()

    profile = deepcontext.Profile.load(options.output)
    augment_ns = profile.query().under("augment").total("host_time_ns")
    print(f"loss {loss.item():.3f}")
    print(f"operators inside 'augment': {augment_ns / options.steps / 1e3:.1f} us per step")


if __name__ == "__main__":
    main()
