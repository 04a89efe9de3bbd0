"""Ten thousand training steps leave the same tree as a hundred: `make soak`."""

from pathlib import Path

import pytest
import torch

import deepcontext
from deepcontext import Profile

pytestmark = pytest.mark.soak


def test_tree_and_file_do_not_grow_with_the_steps(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    optimizer = torch.optim.AdamW(model.parameters())
    batch, target = torch.randn(8, 32), torch.randint(0, 4, (8,))
    path = tmp_path / "out.dcprof"
    session = deepcontext.start(path, snapshot_interval=0, cpu_rate=0)

    def train(steps: int) -> Profile:
        for _ in range(steps):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(batch), target).backward()
            optimizer.step()
            session.step()
        session.snapshot()
        return Profile.load(path)

    try:
        # From one line: another line would be another call path.
        (short, short_bytes), (long, long_bytes) = [
            (train(steps), path.stat().st_size) for steps in (100, 9900)
        ]
    finally:
        deepcontext.stop()
    assert long.run.steps == 10_000
    assert len(long.tree) == len(short.tree)
    assert len(long.frames) == len(short.frames)
    # Larger numbers compress a little less well; nothing else may grow.
    assert long_bytes < 1.2 * short_bytes
    assert long.trust.counters["contexts_refused"] == 0
    operators = long.query().kind("operator").name("aten::addmm")
    counts = long.counts("call_duration_ns")
    assert sum(int(counts[node]) for node in operators.nodes()) == 2 * 10_000
