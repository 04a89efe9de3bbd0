"""`deepcontext prune`: old runs go, the oldest first; nothing of a run that may be live does."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.profiler.format import run_directory
from deepcontext.profiler.format.pid_space import pid_space
from deepcontext.ui.cli.app import main
from tests.synthetic import random_profile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from deepcontext import Profile

DAY_S = 86_400


def made(**facts: Any) -> Profile:
    profile = random_profile(20)
    return dataclasses.replace(profile, run=dataclasses.replace(profile.run, **facts))


def set_age(path: Path, days: float) -> None:
    then = time.time() - days * DAY_S
    for each in [path, *path.rglob("*")]:
        os.utime(each, (then, then))


@pytest.fixture
def run_of(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that makes a run directory in a folder `runs`, so many days old."""

    def make(name: str, days: float, *, ballast: int = 0, **facts: Any) -> Path:
        path = tmp_path / "runs" / f"{name}.dcrun"
        path.parent.mkdir(exist_ok=True)
        run_directory.create(path, program="train.py", options={})
        target = run_directory.profile_path(path)
        made(**facts).save(target)
        (path / "job.dcprof").write_bytes(b"0" * ballast)
        set_age(path, days)
        return path

    return make


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def prune(folder: Path, *words: str) -> int:
    return main(["prune", *words, str(folder)])


def test_old_runs_and_profiles_go_and_other_files_stay(
    run_of: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run_of("old", 40).parent
    run_of("new", 20)
    made().save(folder / "single.dcprof")
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    (folder / "other.dcprof").write_text("no profile", encoding="utf-8")
    (folder / "data").mkdir()
    for name in ("single.dcprof", "notes.txt", "other.dcprof", "data"):
        set_age(folder / name, 90)
    assert prune(folder, "--older-than", "30d") == 0
    assert names(folder) == ["data", "new.dcrun", "notes.txt", "other.dcprof"]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("/")[-1].split()[0] for line in lines] == ["single.dcprof", "old.dcrun"]


def test_pipes_are_left_alone_and_not_waited_for(run_of: Callable[..., Path]) -> None:
    folder = run_of("old", 40).parent
    for name in ("pipe", "pipe.dcprof"):
        os.mkfifo(folder / name)
    assert prune(folder, "--older-than", "30d") == 0
    assert names(folder) == ["pipe", "pipe.dcprof"]


def test_the_oldest_go_until_the_others_fit(run_of: Callable[..., Path]) -> None:
    folder = run_of("run1", 1, ballast=1_000_000).parent
    for days in range(2, 6):
        run_of(f"run{days}", days, ballast=1_000_000)
    assert prune(folder, "--beyond", "2.5MB") == 0
    assert names(folder) == ["run1.dcrun", "run2.dcrun"]


def test_a_dry_run_removes_nothing(
    run_of: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run_of("old", 40).parent
    assert prune(folder, "--older-than", "4w", "--dry-run") == 0
    assert names(folder) == ["old.dcrun"]
    assert "would remove" in capsys.readouterr().out


def here(pid: int) -> dict[str, object]:
    return {
        "exit_reason": "snapshot",
        "pid": pid,
        "pid_space": pid_space(),
        "start_unix_ns": time.time_ns(),
        "hostname": "node7",
    }


def ended_process() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def test_a_running_process_keeps_its_run_whatever_its_age(
    run_of: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run_of("live", 400, ballast=10_000_000, **here(os.getpid())).parent
    run_of("killed", 300, **here(ended_process()))
    run_of("elsewhere", 200, **(here(17) | {"pid_space": "another"}))
    assert prune(folder, "--older-than", "1d", "--beyond", "1KB") == 0
    assert names(folder) == ["elsewhere.dcrun", "live.dcrun"]
    printed = capsys.readouterr().out
    assert f"live.dcrun: process {os.getpid()} is running" in printed
    assert "elsewhere.dcrun: process 17 may be running on node7" in printed


def test_a_run_without_a_profile_is_kept(run_of: Callable[..., Path]) -> None:
    """With --snapshot-interval 0 a run has no profile until it ends."""
    path = run_of("begun", 400)
    for profile in run_directory.profiles(path):
        profile.unlink()
    set_age(path, 400)
    prune(path.parent, "--older-than", "1d")
    assert path.is_dir()


def test_a_process_that_the_run_started_keeps_it(run_of: Callable[..., Path]) -> None:
    path = run_of("parent", 400)
    variables = {**os.environ, "PYTHONPATH": str(run_directory.launch_folder(path))}
    child = [sys.executable, "-I", "-c", "input()"]
    with subprocess.Popen(child, env=variables, stdin=subprocess.PIPE) as process:
        prune(path.parent, "--older-than", "1d")
        assert path.is_dir()
        process.communicate()
    prune(path.parent, "--older-than", "1d")
    assert not path.exists()


@pytest.mark.parametrize("is_here", [True, False])
def test_a_rank_that_has_not_written_its_profile_keeps_the_run(
    run_of: Callable[..., Path], *, is_here: bool
) -> None:
    path = run_of("ranks", 400)
    (folder,) = {each.parent for each in run_directory.profiles(path)}
    if not is_here:
        folder = folder.rename(folder.with_name("another"))
    writer = f"rank00001-{os.getpid():07}-{int(time.time() * 1000):x}"
    (folder / "job").write_text(json.dumps({"job": "1", "writers": [writer]}), encoding="utf-8")
    set_age(path, 400)
    prune(path.parent, "--older-than", "1d")
    assert path.is_dir()


def test_what_was_written_just_now_is_kept(run_of: Callable[..., Path]) -> None:
    path = run_of("copied", 400)
    (path / "job.dcprof").touch()
    prune(path.parent, "--beyond", "1KB")
    assert path.is_dir()


def test_links_are_left_alone(run_of: Callable[..., Path], tmp_path: Path) -> None:
    path = run_of("real", 400)
    other = tmp_path / "other"
    other.mkdir()
    (other / "linked.dcrun").symlink_to(path)
    prune(other, "--older-than", "1d")
    assert path.is_dir()
    assert names(other) == ["linked.dcrun"]


@pytest.mark.parametrize(
    "words", [(), ("--older-than", "30"), ("--older-than", "x"), ("--beyond", "5 apples")]
)
def test_limits_that_cannot_be_read_are_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert prune(tmp_path, *words) == 2


def test_a_folder_that_is_missing_is_refused(tmp_path: Path) -> None:
    assert prune(tmp_path / "none", "--beyond", "1GB") == 2
