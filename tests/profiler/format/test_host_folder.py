"""Ranks that join one run directory: what they remove, and what they never remove."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from deepcontext.errors import UserError
from deepcontext.profiler.format import run_directory
from deepcontext.profiler.format.host_folder import Content, Writer, join

if TYPE_CHECKING:
    from pathlib import Path

CONTENT = Content("train.py", {"run": "here"})
# Joins when its standard input ends, and writes its profile at once, in several run directories.
RANK = """
import sys
from pathlib import Path
from deepcontext.profiler.format.host_folder import Content, Writer, join

job, rank, *runs = sys.argv[1:]
content = Content("train.py", {"job": job})
print("ready", flush=True)
sys.stdin.read()
for run in runs:
    join(Path(run), Writer(job, f"rank{int(rank):05}"), content).write_bytes(job.encode())
"""


def run_job(folder: Path, job: str, count: int, *runs: str) -> None:
    begin, end = os.pipe()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, job, str(rank), *runs],
            cwd=folder,
            stdin=begin,
            stdout=subprocess.PIPE,
        )
        for rank in range(count)
    ]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
    os.close(begin)
    os.close(end)  # all begin now
    assert [process.wait(60) for process in processes] == [0] * count


def contents(run: Path) -> list[str]:
    return sorted(path.read_text("utf-8") for path in run_directory.profiles(run))


def test_sixteen_ranks_at_once_replace_an_earlier_job_and_keep_each_other(tmp_path: Path) -> None:
    names = [f"train{number}.dcrun" for number in range(8)]
    run_job(tmp_path, "first", 16, *names)
    hosts = [path for name in names for path in (tmp_path / name).glob("[!.]*") if path.is_dir()]
    for host in hosts:
        assert contents(host.parent) == ["first"] * 16
        (host / "notes.txt").write_text("mine", encoding="utf-8")
        (host / "best.dcprof").write_text("mine", encoding="utf-8")
    run_job(tmp_path, "second", 16, *names)
    for host in hosts:
        run = host.parent
        assert contents(run) == ["mine", *["second"] * 16]
        assert json.loads((run / ".launch" / "options.json").read_bytes()) == {"job": "second"}
        assert (host / "notes.txt").exists()
        assert {path.name for path in run.iterdir()} == {".launch", "job.json", host.name}
        assert run.stat().st_mode & 0o777 == 0o700
    assert len(hosts) == len(names)
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_a_job_that_the_same_launcher_starts_again_replaces_the_earlier_one(tmp_path: Path) -> None:
    for _ in range(2):  # two commands in one shell
        run_job(tmp_path, "shell", 2, "train.dcrun")
    assert contents(tmp_path / "train.dcrun") == ["shell"] * 2


def test_a_profile_of_a_process_that_runs_stays(tmp_path: Path) -> None:
    running = subprocess.Popen(["/bin/sleep", "60"])
    try:
        folder = join(tmp_path / "train.dcrun", Writer("other", "rank00000"), CONTENT).parent
        (folder / "job").unlink()
        path = (
            folder
            / f"{running.pid:07}-{run_directory.profile_path(folder.parent).stem.partition('-')[2]}.dcprof"
        )
        path.write_bytes(b"runs")
        join(tmp_path / "train.dcrun", Writer("new", "rank00000"), CONTENT)
        assert path.exists()
    finally:
        running.send_signal(signal.SIGKILL)
        running.wait()
    join(tmp_path / "train.dcrun", Writer("third", "rank00000"), CONTENT)
    # This process has joined before, and runs.
    assert path.exists()
    (folder / "job").unlink()
    join(tmp_path / "train.dcrun", Writer("fourth", "rank00000"), CONTENT)
    assert not path.exists()


def test_a_restart_keeps_the_earlier_attempt(tmp_path: Path) -> None:
    run_job(tmp_path, "job", 1, "train.dcrun")
    path = join(
        tmp_path / "train.dcrun", Writer("other", "rank00000.attempt1", is_restart=True), CONTENT
    )
    path.write_bytes(b"again")
    assert contents(tmp_path / "train.dcrun") == ["again", "job"]


def test_a_folder_without_content_becomes_the_run_directory(tmp_path: Path) -> None:
    (tmp_path / "train.dcrun").mkdir()
    join(tmp_path / "train.dcrun", Writer("job", "rank00000"), CONTENT)
    assert run_directory.is_run(tmp_path / "train.dcrun")


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_path_that_is_no_run_directory_is_refused(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "train.dcrun"
    if kind == "file":
        target.write_text("mine", encoding="utf-8")
    else:
        target.mkdir()
        (target / "mine").write_text("mine", encoding="utf-8")
    with pytest.raises(UserError, match=r"cannot write '.*train\.dcrun': "):
        join(target, Writer("job", "rank00000"), CONTENT)
    assert os.listdir(tmp_path) == ["train.dcrun"]  # noqa: PTH208
    assert (target if kind == "file" else target / "mine").read_text("utf-8") == "mine"


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot write '.*/none/train\.dcrun': No such file"):
        join(tmp_path / "none" / "train.dcrun", Writer("job", "rank00000"), CONTENT)


@pytest.mark.parametrize(
    ("state", "age_s", "stays"),
    [
        ({"job": "slurm 1.0", "is_same_everywhere": True}, 3600, False),
        ({"job": "slurm 1.0", "is_same_everywhere": True}, 60, True),
        ({"job": "slurm 2.0", "is_same_everywhere": True}, 3600, True),
        ({"job": "process 1", "is_same_everywhere": False}, 3600, True),
    ],
)
def test_what_an_earlier_job_left_on_another_host(
    tmp_path: Path, state: dict[str, object], age_s: int, *, stays: bool
) -> None:
    run = tmp_path / "train.dcrun"
    join(run, Writer("slurm 1.0", "rank00000", is_same_everywhere=True), CONTENT)
    other = run / "other"
    other.mkdir()
    profile = other / "rank00001-0000001-1.dcprof"
    profile.write_bytes(b"old")
    (other / "job").write_text(json.dumps(state), encoding="utf-8")
    (other / "notes.txt").write_text("mine", encoding="utf-8")
    for path in (profile, other / "job"):
        old = path.stat().st_mtime - age_s
        os.utime(path, (old, old))
    join(run, Writer("slurm 2.0", "rank00000", is_same_everywhere=True), CONTENT)
    assert profile.exists() is stays
    assert (other / "notes.txt").exists()
