"""Each kernel as often and as long as torch.profiler says, and the device's time on lines of the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from harness import SESSION_OF_KERNELS
from judging import compare, share_on_lines

from deepcontext.profiler.format.frame import Phase

if TYPE_CHECKING:
    from harness import Bench

pytestmark = [pytest.mark.gpu, pytest.mark.needs("torch")]

MODEL = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(2048, 8192), torch.nn.GELU(), torch.nn.Linear(8192, 2048), torch.nn.LayerNorm(2048)
).cuda()
x = torch.randn(4096, 2048, device="cuda")
"""
WORKS = {
    "eager": """
def step():
    model(x).sum().backward()
""",
    "compiled": """
forward = torch.compile(model)
def step():
    forward(x).sum().backward()
""",
    "graph": """
graph = torch.cuda.CUDAGraph()
with torch.no_grad():
    model(x)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        model(x)
def step():
    graph.replay()
""",
}
WORK = """
def work():
    for _ in range(40):
        step()
    torch.cuda.synchronize()
work()
"""
OTHER = """
from torch.profiler import profile, ProfilerActivity
def session():
    with profile(activities=[ProfilerActivity.CUDA]) as other:
        work()
    found = {}
    for event in other.profiler.kineto_results.events():
        name = event.name()
        if event.device_type() == torch.autograd.DeviceType.CUDA and not name.startswith("Mem"):
            entry = found.setdefault(name, [0, 0])
            entry[0] += 1
            entry[1] += event.duration_ns()
    return found
"""
ROUNDS = "\nreport(sessions=[session() for _ in range(5)])\n"


@pytest.mark.parametrize("mode", WORKS)
def test_each_kernel_as_torch_profiler_sees_it(bench: Bench, mode: str) -> None:
    """Two processes, because one library serves one tool; the median of five sessions in each."""
    program = MODEL + WORKS[mode] + WORK
    own = bench.run(program + SESSION_OF_KERNELS + ROUNDS, is_profiled=False).values["sessions"]
    other = bench.run(program + OTHER + ROUNDS, is_profiled=False).values["sessions"]
    found = compare(own, other)
    bench.row(
        f"{mode}: kernels counted differently from torch.profiler", str(found.unequal), "none"
    )
    bench.row(
        f"{mode}: largest difference of a kernel's median, of {found.compared} kernels",
        f"{found.deviation:.2%} ({found.kernel[:80]})",
        "1 %",
    )
    assert not found.unequal
    assert found.compared >= 2
    assert found.deviation <= 0.01


def test_a_training_step_is_on_lines_of_the_program(bench: Bench) -> None:
    outcome = bench.run(
        """
        import torch
        from torch import nn
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.LayerNorm(768)
                self.attention = nn.MultiheadAttention(768, 12, batch_first=True)
                self.mlp = nn.Sequential(nn.Linear(768, 3072), nn.GELU(), nn.Linear(3072, 768))
            def forward(self, x):
                normed = self.norm(x)
                x = x + self.attention(normed, normed, normed, need_weights=False)[0]
                return x + self.mlp(self.norm(x))
        model = nn.Sequential(*(Block() for _ in range(6))).cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        x = torch.randn(16, 512, 768, device="cuda")
        def step():
            model(x).pow(2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        for _ in range(30):
            step()
        torch.cuda.synchronize()
        """
    )
    assert outcome.profile is not None
    phases = {"all": None, "forward": Phase.FORWARD, "backward": Phase.BACKWARD}
    shares = {
        name: share_on_lines(outcome.profile, "program.py", phase) for name, phase in phases.items()
    }
    for name, share in shares.items():
        bench.row(
            f"transformer step, {name}: time on a line of the program", f"{share:.2%}", "99 %"
        )
    assert outcome.counters["gpu_records_unmatched"] == 0
    assert min(shares.values()) >= 0.99
