"""Memory and file size from 10 to 10,000 training steps, and how long stopping takes."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from paired import Table, machine

STEPS = (10, 100, 1000, 10_000)
CHILD = """
import json, sys, time
import torch
import deepcontext
from training_models import MODELS
torch.set_num_threads(1)

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096

path, model, wanted = sys.argv[1], sys.argv[2], [int(n) for n in sys.argv[3:]]
step = MODELS[model]()
for _ in range(20):
    step()
session = deepcontext.start(path, snapshot_interval=0)
rows, done = [], 0
for steps in wanted:
    while done < steps:
        step()
        session.step()
        done += 1
    before = resident()
    session.snapshot()
    rows.append([steps, before, __import__("os").path.getsize(path)])
begun = time.perf_counter_ns()
deepcontext._MANAGER.stop()
print(json.dumps({"rows": rows, "stop_ns": time.perf_counter_ns() - begun}))
"""


def measure(model: str, steps: tuple[int, ...] = STEPS) -> dict[str, object]:
    """Run one process; returns {"rows": [[steps, resident bytes, file bytes]], "stop_ns"}."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "growth.dcprof")
        done = subprocess.run(
            [sys.executable, "-c", CHILD, path, model, *map(str, steps)],
            check=True,
            capture_output=True,
            text=True,
            cwd=Path(__file__).parent,
        )
    return json.loads(done.stdout.splitlines()[-1])


def table(steps: tuple[int, ...] = STEPS) -> Table:
    rows = []
    for model in ("MLP", "transformer"):
        found = measure(model, steps)
        base = found["rows"][0][1]
        for count, resident, size in found["rows"]:
            rows.append([
                model,
                f"{count:,}",
                f"{resident / 1e6:.1f} MB",
                f"{(resident - base) / 1e6:+.1f} MB",
                f"{size / 1e3:.1f} kB",
                f"{found['stop_ns'] / 1e6:.0f} ms" if count == steps[-1] else "",
            ])
    return Table(
        "Growth",
        ["program", "steps", "resident memory", "since the first row", "file", "stop"],
        rows,
        [
            "One process a program; the resident set is that of the whole program. Design: the "
            "same for 10,000 steps as for 10 (within 5 % of 100 steps), stop below 200 ms. "
            f"{machine()}.",
        ],
    )


if __name__ == "__main__":
    print(f"torch {torch.__version__}")
    print(table().markdown())
