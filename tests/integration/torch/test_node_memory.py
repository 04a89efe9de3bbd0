"""What a program with very many call paths costs in memory."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import random, sys
import torch
import deepcontext
from deepcontext import _native

def status(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))

random = random.Random(0)
ones = torch.ones(4)
def a(depth): return step(depth) + 1
def b(depth): return step(depth) * 2
def c(depth): return torch.relu(step(depth))
def d(depth):
    return step(depth).neg()
def step(depth):
    return random.choice((a, b, c, d))(depth - 1) if depth else torch.tanh(ones)

session = deepcontext.start(sys.argv[1], snapshot_interval=0, timeline=False)
for _ in range(500):
    step(10)
nodes, before = _native.counters()["nodes"], status("VmRSS")
for _ in range(8_000):
    step(10)
nodes, recorded = _native.counters()["nodes"] - nodes, status("VmRSS")
session.snapshot()  # writes as the end does, without reading the profile again
print(nodes, (recorded - before) // nodes, (status("VmHWM") - before) // nodes)
deepcontext.stop()
"""


def test_a_node_takes_no_more_than_its_option_says(tmp_path: Path) -> None:
    words = [sys.executable, "-c", PROGRAM, str(tmp_path / "p.dcprof")]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=600)
    nodes, recorded, at_most = map(int, done.stdout.split())
    assert nodes > 150_000
    # Of one run in five, the heap has some 30 bytes more for each.
    assert recorded <= 220
    assert at_most <= 380
