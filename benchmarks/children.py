"""What following children costs: a program that starts none, and a child that imports no framework."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from paired import Table, added, interleave, machine, ratio

ROUNDS = 30
CHILDREN = 40
ALONE = """
total = 0
for number in range(3_000_000):
    total += number * number
"""
ALONE_WITH_TORCH = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
for _ in range(300):
    model(torch.randn(32, 64)).sum().backward()
"""
SHORT_CHILDREN = f"""
import subprocess, sys
for _ in range({CHILDREN}):
    subprocess.run([sys.executable, "-c", "pass"], check=True)
"""


def processor_ms(command: Sequence[str], folder: Path) -> float:
    """Processor time of a command and all its descendants, ms."""
    process = subprocess.Popen(command, cwd=folder)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return 1e3 * (usage.ru_utime + usage.ru_stime)


def profiled(program: str, children: str, folder: Path) -> Callable[[], float]:
    words = [sys.executable, "-m", "deepcontext", "profile", "-q", "--children", children]
    return lambda: processor_ms([*words, "-o", f"{children}.dcprof", program], folder)


def table(rounds: int = ROUNDS) -> Table:
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for label, source, children in (
            ("no child, plain Python", ALONE, 1),
            ("no child, a small model in torch", ALONE_WITH_TORCH, 1),
            (f"{CHILDREN} children `python -c pass`, a child", SHORT_CHILDREN, CHILDREN),
        ):
            (folder / "program.py").write_text(source, encoding="utf-8")
            how = ("none", "frameworks")
            modes = {each: profiled("program.py", each, folder) for each in how}
            figures = interleave(modes, rounds)
            more = added(figures, "frameworks", "none") / children
            rows.append([
                label,
                f"{statistics.median(figures['none']) / children:.1f} ms",
                f"{more:+.2f} ms",
                f"{ratio(figures, 'frameworks', 'none'):.4f}x",
            ])
    return Table(
        "Following children",
        ["program", "`--children none`", "the default adds", "ratio"],
        rows,
        [
            "Processor time of `deepcontext profile` and all its descendants, "
            f"{rounds} interleaved rounds, medians within a round. Design: nothing measurable where "
            f"there is no child, 6 ms for a child without a framework. {machine()}.",
        ],
    )


if __name__ == "__main__":
    print(table().markdown())
