"""Run jobs of several processes in a folder, and tell which processes worked and which have a profile."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import uuid
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deepcontext.profiler.format import run_directory
from deepcontext.profiler.model.profile import Profile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROFILE = (sys.executable, "-m", "deepcontext", "profile", "--no-report")
BIN = str(Path(sys.executable).parent)

# What each process of a job that works calls. The file says which processes did.
WORK = """
import os, pathlib
import torch

def work():
    torch.mm(torch.ones(8, 8), torch.ones(8, 8))
    pathlib.Path("worked", str(os.getpid())).touch()
"""


def environment(tag: str, folder: str = BIN) -> dict[str, str]:
    """Return the environment of a job that looks for its commands in the folder first."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return {
        **inherited,
        "OMP_NUM_THREADS": "1",
        "PATH": path,
        "RAY_USAGE_STATS_ENABLED": "0",
        "DEEPCONTEXT_TEST_JOB": tag,
    }


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def left_running(tag: str) -> list[str]:
    """Return the processes that have the environment of the job and are no zombies."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and process.name != str(os.getpid()):
            try:
                if tag.encode() in (process / "environ").read_bytes():
                    found.append((process / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue
    return found


def all_ended(tag: str) -> list[str]:
    """Wait until no process of the job is left; return those that stay."""
    until = time.monotonic() + 30
    while (left := left_running(tag)) and time.monotonic() < until:
        time.sleep(0.2)
    return left


def start(
    folder: Path, words: Sequence[str], tag: str, variables: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    folder.mkdir(exist_ok=True)
    (folder / "worked").mkdir()
    return subprocess.Popen(
        words,
        cwd=folder,
        env=variables or environment(tag),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def write(folder: Path, files: Mapping[str, str]) -> None:
    folder.mkdir()
    for name, text in {**files, "work.py": WORK}.items():
        (folder / name).write_text(text, encoding="utf-8")


def run(folder: Path, words: Sequence[str], files: Mapping[str, str]) -> tuple[int, str, str]:
    """Return exit status, standard output and standard error of a job of which nothing is left."""
    write(folder, files)
    tag = str(uuid.uuid4())
    process = start(folder, words, tag)
    output, errors = process.communicate(timeout=300)
    assert all_ended(tag) == []
    return process.returncode, output, errors


def worked(folder: Path) -> set[int]:
    return {int(path.name) for path in (folder / "worked").iterdir()}


def profiles(folder: Path) -> list[Profile]:
    (run_folder,) = folder.glob("*.dcrun")
    return [Profile.load(path) for path in run_directory.profiles(run_folder)]


def has_operator(profile: Profile, operator: str) -> bool:
    return len(profile.query().kind("operator").name(operator).nodes()) > 0


def recorded(folder: Path, operator: str) -> set[int]:
    """Return the processes whose profile has the operator."""
    return {each.run.pid for each in profiles(folder) if has_operator(each, operator)}


def needs(module: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(find_spec(module) is None, reason=f"needs {module}")
