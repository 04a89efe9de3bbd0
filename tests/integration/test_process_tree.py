"""A command that reaches its time limit leaves no process behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.integration.process_tree import run_tree

if TYPE_CHECKING:
    from pathlib import Path

# As a launcher: ranks in sessions of their own, which would outlive it.
LAUNCHER = """
import os, subprocess, sys, time
rank = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
ranks = [
    subprocess.Popen([sys.executable, "-c", rank], start_new_session=True, stdout=subprocess.PIPE)
    for _ in range(2)
]
numbers = [each.stdout.readline().decode().strip() for each in ranks]
with open("new", "w") as file:
    file.write(" ".join(numbers))
os.rename("new", "ranks")
time.sleep(float(sys.argv[1]))
for each in ranks:
    each.kill()
    each.wait()
sys.exit(int(sys.argv[2]))
"""


def is_running(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as stat:  # noqa: PTH123
            return stat.read().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False


def command(seconds: float, status: int) -> list[str]:
    return [sys.executable, "-c", LAUNCHER, str(seconds), str(status)]


@pytest.mark.long
def test_past_the_limit_everything_below_is_ended(tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run_tree(command(600, 0), cwd=tmp_path, timeout_s=5)
    ranks = list(map(int, (tmp_path / "ranks").read_text(encoding="utf-8").split()))
    assert len(ranks) == 2
    ended_by = time.monotonic() + 30  # a killed process still has to be given a processor
    while any(map(is_running, ranks)) and time.monotonic() < ended_by:
        time.sleep(0.05)
    assert not any(map(is_running, ranks))


def test_a_command_that_ends_is_left_alone(tmp_path: Path) -> None:
    run_tree(command(0, 0), cwd=tmp_path, timeout_s=60)
    with pytest.raises(subprocess.CalledProcessError):
        run_tree(command(0, 3), cwd=tmp_path, timeout_s=60)
    assert os.listdir(tmp_path) == ["ranks"]  # noqa: PTH208
