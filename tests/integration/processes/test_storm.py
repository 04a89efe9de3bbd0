"""500 children, 64 at a time, a fifth of them with torch: each is accounted for, and disk is bounded.

Minutes of real processes, so behind a marker: `make processes`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from deepcontext.profiler.format import run_directory
from deepcontext.profiler.model.profile import Profile

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.processes, pytest.mark.timeout(1800)]
PROGRAM = """
import subprocess, sys

def start(number):
    code = "import torch; torch.ones(8).sum()" if number % 5 == 0 else "pass"
    return subprocess.Popen([sys.executable, "-c", f"{code}\\nraise SystemExit({number % 7})"])

running, waiting = {}, list(range(500))
while running or waiting:
    while waiting and len(running) < 64:
        number = waiting.pop()
        running[start(number)] = number
    child = next(iter(running))
    assert child.wait() == running.pop(child) % 7
print("all")
"""
MOST_BYTES = 50_000_000


def test_a_storm_of_children(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(PROGRAM, encoding="utf-8")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        [sys.executable, "-m", "deepcontext", "profile", "-q", "job.py"],
        cwd=tmp_path,
        env={**environment, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=1500,
    )
    assert (done.stderr, done.stdout, done.returncode) == ("", "all\n", 0)
    recorded = run_directory.profiles(tmp_path / "job.dcrun")
    assert len(recorded) == 1 + 100
    files = [path for path in (tmp_path / "job.dcrun").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < MOST_BYTES
    program, *children = map(Profile.load, recorded)
    for child in children:
        assert (child.run.exit_reason, child.run.parent_pid) == ("exit", program.run.pid)
        assert child.query().name("aten::sum").total("host_time_ns") > 0
    assert program.trust.counters["missed_children"] == 0
