"""Twenty programs that are sampled with `--stalls`: none may hang. Without a GPU they run on the fakes.

Before each fifth, a neighbour that is being sampled is killed: on hardware, a program hung after that.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness import Bench

FAKES = os.environ.get("DEEPCONTEXT_FAKES", "")
pytestmark = [pytest.mark.gpu, *([] if FAKES else [pytest.mark.needs("torch")])]
SOURCES = Path(__file__).resolve().parents[1] / "fakes"
SECONDS = 1 if FAKES else 10
LIMIT_S = 60
CONSENT = {"DEEPCONTEXT_GPU_STALLS": "may-hang"}

_BEGIN = (
    f"""
import sys, threading, time
from pathlib import Path
sys.path.insert(0, {str(SOURCES)!r})
import kit
gpu = kit.FakeGpu(Path({FAKES!r}), kit.CUPTI, initialize=False)
gpu.initialize()
gpu.lazy_loading()
end = time.monotonic() + {SECONDS}
"""
    if FAKES
    else f"""
import os, threading, time
import torch
end = time.monotonic() + {SECONDS}
x = torch.randn(1024, 1024, device="cuda")
"""
)
_ON_FAKES = {
    "products": "while time.monotonic() < end: gpu.launch('k', us=1)",
    "threads": """
def work(name):
    while time.monotonic() < end:
        gpu.launch(name, us=1)
        gpu.get_function(f"{name} {time.monotonic()}")
threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
for thread in threads: thread.start()
for thread in threads: thread.join()
""",
    "first launches": "while time.monotonic() < end: gpu.launch(str(time.monotonic()), us=1)",
    "graphs": """
while time.monotonic() < end:
    gpu.capture_begin(); gpu.launch("k", us=1)
    gpu.replay(gpu.instantiate(gpu.capture_end()))
""",
    "exit inside a window": """
while time.monotonic() < end: gpu.launch('k', us=1)
time.sleep(0.3); gpu.launch('k', us=1)
""",
}
_ON_HARDWARE = {
    "products": "while time.monotonic() < end: y = x @ x\ntorch.cuda.synchronize()",
    "threads": """
def work():
    layer = torch.nn.TransformerEncoderLayer(512, 8, batch_first=True, device="cuda")
    rows = torch.randn(8, 128, 512, device="cuda")
    while time.monotonic() < end:
        layer(rows).sum().backward()
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
""",
    "first launches": """
names = [name for name in dir(torch) if callable(getattr(torch, name))]
while time.monotonic() < end:
    for name in names:
        try: getattr(torch, name)(x)
        except Exception: pass
""",
    "graphs": """
x @ x
while time.monotonic() < end:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph): y = x @ x
    for _ in range(100): graph.replay()
    torch.cuda.synchronize()
""",
    "exit inside a window": """
while time.monotonic() < end: y = x @ x
time.sleep(0.3); y = x @ x
""",
}
PROGRAMS = _ON_FAKES if FAKES else _ON_HARDWARE


@pytest.mark.takes(LIMIT_S)
@pytest.mark.parametrize("number", range(20))
def test_a_sampled_program_ends(bench: Bench, number: int) -> None:
    kind = list(PROGRAMS)[number % len(PROGRAMS)]
    if number % 5 == 4:
        _kill_a_neighbour(bench.folder)
    begun = time.monotonic()
    outcome = bench.run(_BEGIN + PROGRAMS[kind], "--stalls", environment=CONSENT, limit_s=LIMIT_S)
    windows, samples = outcome.figure("stall_windows"), outcome.figure("stall_samples")
    figures = f"{windows} windows, {samples} samples, {time.monotonic() - begun:.0f} s"
    bench.row(f"stalls {number}: {kind}", figures, "ends")
    assert windows > 0, outcome.reason


def _kill_a_neighbour(folder: Path) -> None:
    """Let another program be sampled, and kill it."""
    script = folder / "neighbour.py"
    script.write_text(_BEGIN + PROGRAMS["products"], encoding="utf-8")
    command = [sys.executable, "-m", "deepcontext", "profile", "-q", "--stalls", str(script)]
    neighbour = subprocess.Popen(
        command, cwd=folder, env={**os.environ, **CONSENT}, stdout=-3, stderr=-3
    )
    time.sleep(SECONDS / 2 + 3)
    neighbour.kill()
    neighbour.wait()
