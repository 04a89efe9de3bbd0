"""A trace and a profile of the same run on the CPU agree: both tools watch one process at the same time."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.importing.opening import load
from deepcontext.profiler.summaries.account import account

if TYPE_CHECKING:
    from pathlib import Path

    from deepcontext.profiler.model.profile import Profile

pytest.importorskip("torch")

PROGRAM = """
import torch
import deepcontext
from torch import nn
from torch.profiler import ProfilerActivity, profile

class Heavy(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(700, 700))
    def forward(self, x):
        return torch.relu(x @ self.weight) @ self.weight

def light(x):
    return (x * 2).sum()

def main():
    model, x = Heavy(), torch.randn(700, 700)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    def step():
        loss = light(model(x))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    step()
    with deepcontext.profile("run.dcprof"):
        with profile(activities=[ProfilerActivity.CPU], with_stack=True, profile_memory=True) as tracer:
            for _ in range(4):
                step()
                tracer.step()
    tracer.export_chrome_trace("trace.json.gz")

main()
"""


def operators(profile: Profile) -> tuple[Counter[str], Counter[str]]:
    """Return number of calls and total time of operators by name."""
    rows = profile.metrics["call_duration_ns"]
    counts: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    for node, count, total in zip(
        rows.node.tolist(), rows.count.tolist(), rows.total.tolist(), strict=True
    ):
        frame = profile.frame(node)
        # The engine's own scope around a backward operator is in traces alone.
        if frame.kind is FrameKind.OPERATOR and "evaluate_function" not in frame.name:
            counts[frame.name] += count
            totals[frame.name] += total
    return counts, totals


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Profile, Profile]:
    folder: Path = tmp_path_factory.mktemp("pair")
    (folder / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return load(folder / "run.dcprof"), load(folder / "trace.json.gz")


@pytest.mark.long
def test_operators_are_the_same(pair: tuple[Profile, Profile]) -> None:
    (recorded, times), (traced, traced_times) = map(operators, pair)
    common = {name for name in recorded if name.startswith("aten::")}
    assert {name: traced[name] for name in common} == {name: recorded[name] for name in common}
    # The larger operators, because each tool's own cost is in the time that the other one measures.
    large = [name for name, total in times.most_common(3)]
    for name in large:
        assert traced_times[name] == pytest.approx(times[name], rel=0.05), name


def test_lines_have_the_same_order(pair: tuple[Profile, Profile]) -> None:
    def functions(profile: Profile) -> list[str]:
        found = [
            place.frame.name.rpartition(".")[2] for place in account(profile).lines if place.frame
        ]
        return [name for name in dict.fromkeys(found) if name in {"forward", "light", "step"}][:1]

    recorded, traced = pair
    assert functions(recorded) == functions(traced) == ["forward"]


def test_backward_is_at_the_same_place(pair: tuple[Profile, Profile]) -> None:
    def above(profile: Profile) -> set[str]:
        return {
            profile.frame(int(profile.tree.parent[node])).name
            for node in range(len(profile.tree))
            if profile.frame(node).name == "aten::mm" and profile.tree.phase[node] == 2
        }

    recorded, traced = pair
    assert above(recorded) == above(traced) == {"MmBackward0"}
    assert traced.trust.counters["backward_links_missed"] == 0


def test_modules_and_functions_are_on_the_path(pair: tuple[Profile, Profile]) -> None:
    _, traced = pair
    paths = {
        " > ".join(frame.name for frame in traced.path(node)[1:])
        for node in range(len(traced.tree))
        if traced.frame(node).name == "aten::matmul"
    }
    assert any(
        path.endswith("step > Heavy '0' > Heavy.forward > aten::matmul") for path in paths
    ), paths
