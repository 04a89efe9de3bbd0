"""Every way to start a child, with every way to end: who is recorded, and that nothing changes.

The ways are in `starts.py`. Minutes of real processes, so behind a marker: `make processes`.
"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deepcontext.profiler.format import run_directory
from deepcontext.profiler.model.profile import Profile

pytestmark = pytest.mark.processes
PROGRAM = Path(__file__).with_name("starts.py")
STARTS = runpy.run_path(str(PROGRAM), run_name="starts")
RECORDED, NOT_RECORDED, ENDS = STARTS["RECORDED"], STARTS["NOT_RECORDED"], STARTS["ENDS"]
PROFILE = ("-m", "deepcontext", "profile", "-q", "--children", "frameworks")
# The last snapshot is the profile where the kernel or os._exit ends a process, and in a pool, which
# ends its workers by SIGTERM.
KILLED = {"_exit", "SIGTERM", "SIGKILL", "abort"}


def run(folder: Path, way: str, *words: str) -> tuple[subprocess.CompletedProcess[str], set[int]]:
    """Run a way with every end; return what it said, and the processes that it left running."""
    folder.mkdir()
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    program = subprocess.Popen(
        [sys.executable, *words, str(PROGRAM), way, *ENDS],
        cwd=folder,
        env={**environment, "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        stdout, stderr = program.communicate(timeout=400)
    finally:
        program.kill()
    done = subprocess.CompletedProcess(program.args, program.returncode, stdout, stderr)
    return done, left_running(program.pid)


def left_running(session: int) -> set[int]:
    """Return the processes of a session that still run after ten seconds."""
    deadline = time.monotonic() + 10
    while (found := of_session(session)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def of_session(session: int) -> set[int]:
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                found.add(int(entry.name))
    return found


def said(text: str) -> list[str]:
    """Return what was said, without numbers of processes and addresses."""
    lines = re.sub(r"0x[0-9a-f]+|\d+", "N", text).splitlines()
    # The folder of the program, and what depends on the number of bytes that a pipe took at once.
    return [re.sub(r"/\S*/(plain|profiled)\b", "", line) for line in lines]


@pytest.mark.parametrize("way", [*RECORDED, *NOT_RECORDED])
def test_every_end_of_a_child(tmp_path: Path, way: str) -> None:
    plain, left_by_plain = run(tmp_path / "plain", way)
    profiled, left = run(tmp_path / "profiled", way, *PROFILE)
    assert plain.stdout.count("\n") == len(ENDS), plain.stderr
    assert profiled.stdout == plain.stdout
    assert profiled.returncode == plain.returncode == 0
    assert said(profiled.stderr) == said(plain.stderr)
    assert left == left_by_plain == set()
    recorded = run_directory.profiles(tmp_path / "profiled" / "starts.dcrun")
    if not recorded:  # no child was recorded, so the program has a file of its own
        recorded = [tmp_path / "profiled" / "starts.dcprof"]
    program, *children = map(Profile.load, recorded)
    assert way in program.run.command
    children = [each for each in children if "torch.distributed.run" not in each.run.command]
    if way in NOT_RECORDED:
        assert children == []
        return
    reasons = [(end, child.run.exit_reason) for end, child in zip(ENDS, children, strict=True)]
    for end, reason in reasons:
        if way.startswith("loader") and end == "exception":
            continue  # torch may end the worker, or wait for it
        assert (reason == "snapshot") == (end in KILLED or way.startswith("pool")), reasons
    for end, child in zip(ENDS, children, strict=True):
        if child.run.exit_reason == "snapshot":
            continue  # the last snapshot may be older than the work
        metric, name = (
            ("program_launch_count", None) if way == "jax" else ("host_time_ns", "aten::sum")
        )
        worked = child.query() if name is None else child.query().name(name)
        assert worked.total(metric) > 0, end
