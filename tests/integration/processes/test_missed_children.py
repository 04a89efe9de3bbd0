"""Children that use a framework and cannot be recorded are told, with the reason."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deepcontext.profiler.format import run_directory
from deepcontext.profiler.model.profile import Profile

torch = pytest.importorskip("torch")
PACKAGES = str(Path(torch.__file__).parents[1])
# Every child waits until it was looked at; the parent writes a snapshot when all are old enough.
PROGRAM = f"""
import os, subprocess, sys, time
import deepcontext, torch
CODE = "import sys; sys.path.append({PACKAGES!r}); import torch; print('ready', flush=True); sys.stdin.read()"

def start(*words, **options):
    command = [sys.executable, *words, "-c", CODE]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)

elsewhere = {{**os.environ, "DEEPCONTEXT_LAUNCH": "other", "PYTHONPATH": ""}}
children = [start(), start("-BI"), start("-S"), start(env={{}}), start(env=elsewhere)]
worker = os.path.abspath("torch/_inductor/compile_worker/wait.py")
children.append(start(worker, env={{}}))
ready, to_fork = os.pipe()
fork = os.fork()
if fork == 0:
    os.close(to_fork)
    os.read(ready, 1)
    os._exit(0)
for child in children:
    assert child.stdout.readline() == b"ready\\n"
time.sleep(3.2)
deepcontext._MANAGER.session.snapshot()
os.close(to_fork)
os.waitpid(fork, 0)
print([child.communicate()[0] or child.returncode for child in children])
"""


@pytest.mark.processes
def test_children_without_a_profile_are_told_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(PROGRAM, encoding="utf-8")
    worker = tmp_path / "torch" / "_inductor" / "compile_worker" / "wait.py"
    worker.parent.mkdir(parents=True)
    worker.write_text("import sys\nexec(sys.argv[2])\n", encoding="utf-8")
    command = [sys.executable, "-m", "deepcontext", "profile", "-q", "--children", "frameworks"]
    done = subprocess.run(
        [*command, "job.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.stdout, done.stderr, done.returncode) == (f"{[0] * 6}\n", "", 0)
    found = [Profile.load(path) for path in run_directory.profiles(tmp_path / "job.dcrun")]
    program, recorded = sorted(found, key=lambda profile: profile.run.start_unix_ns)
    assert recorded.run.parent_pid == program.run.pid
    assert recorded.trust.counters["missed_children"] == 0
    assert program.trust.counters["missed_children"] == 4
    assert program.trust.counters["ended_children_ns"] > 0
    notes = "\n".join(program.trust.notes)
    assert "runs under python -I" in notes
    assert "runs under python -S" in notes
    assert notes.count("was started without the PYTHONPATH of its parent") == 1
    assert notes.count("1 processes in which torch.compile compiles kernels") == 1
    assert notes.count("was forked without a Process of multiprocessing") == 1
    report = subprocess.run(
        [sys.executable, "-m", "deepcontext", "report", "job.dcrun"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    words = " ".join(report.stdout.split())
    assert f"4 children that use torch or jax have no profile (process {program.run.pid})" in words


def test_a_command_is_shown_short_and_its_flags_are_read() -> None:
    from deepcontext.profiler.recording.launch import missed_children as missed

    assert missed._blocking_flag(b"python\0-u\0-BI\0-c\0pass\0") == "I"
    assert missed._blocking_flag(b"python\0-c\0-I\0") == ""
    assert missed._blocking_flag(b"python\0-Wignore\0-I\0") == "I"
    assert missed._blocking_flag(b"python\0train.py\0-I\0") == ""
    assert missed._shown(b"/usr/bin/python\0-c\0a\n  b\0") == "python -c a b"
    assert len(missed._shown(b"/usr/bin/python\0" + b"x" * 500)) < 70


def test_looking_does_no_harm_where_proc_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deepcontext.profiler.recording.launch.missed_children import MissedChildren

    children = MissedChildren(tmp_path)
    child = subprocess.Popen(["sleep", "600"])
    try:
        monkeypatch.setattr(os, "listdir", _refuse)
        children.look()
    finally:
        child.kill()
        child.wait()
    assert children.notes() == []


def _refuse(path: object) -> list[str]:
    raise PermissionError(13, "not permitted", str(path))
