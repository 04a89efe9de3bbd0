"""GPU work without one record is an error: on screen, in the file, and with --strict in the status."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import deepcontext

if TYPE_CHECKING:
    from pathlib import Path

    from kit import FakeGpu

FAKES = os.path.join(os.path.dirname(__file__), "..", "..", "fakes")  # noqa: PTH118, PTH120
PROGRAM = """
import sys
sys.path.insert(0, {fakes!r})
import kit
from pathlib import Path
gpu = kit.FakeGpu(Path({folder!r}), kit.CUPTI)
gpu.launch("k", us=1, count=5)
{deliver}
sys.exit({status})
"""


def profiled(
    nvidia: FakeGpu, tmp_path: Path, *options: str, deliver: bool = False, status: int = 0
) -> tuple[int, str, deepcontext.Profile]:
    """Profile a program whose device does or does not report; status, messages and profile."""
    script = tmp_path / "train.py"
    script.write_text(
        PROGRAM.format(
            fakes=FAKES,
            folder=str(nvidia._folder),
            deliver="gpu.deliver()" if deliver else "",
            status=status,
        ),
        encoding="utf-8",
    )
    profile = tmp_path / "out.dcprof"
    # The driver is there from the first line on, as in a program whose framework loads it.
    preload = str(nvidia._folder / "libcuda.so.1")
    done = subprocess.run(
        [sys.executable, "-m", "deepcontext", "profile", *options, "-o", str(profile), str(script)],
        env={**os.environ, **nvidia.environment(), "LD_PRELOAD": preload},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stderr, deepcontext.Profile.load(profile)


def errors(profile: deepcontext.Profile) -> list[str]:
    return [note for note in profile.trust.notes if note.startswith("error: ")]


@pytest.mark.parametrize("options", [(), ("--strict",), ("--strict", "-q")])
def test_launches_without_records(
    nvidia: FakeGpu, tmp_path: Path, options: tuple[str, ...]
) -> None:
    status, messages, profile = profiled(nvidia, tmp_path, *options)
    assert status == (4 if "--strict" in options else 0)
    assert "error: the program launched GPU work 5 times and not one record" in messages
    assert len(errors(profile)) == 1
    assert profile.trust.counters["gpu_launches"] == 5


def test_records_that_came_are_no_error(nvidia: FakeGpu, tmp_path: Path) -> None:
    status, messages, profile = profiled(nvidia, tmp_path, "--strict", deliver=True)
    assert status == 0, messages
    assert not errors(profile)
    assert profile.trust.counters["gpu_records_matched"] == 5


def test_the_status_of_a_failing_program_stays(nvidia: FakeGpu, tmp_path: Path) -> None:
    status, _, profile = profiled(nvidia, tmp_path, "--strict", status=3)
    assert status == 3
    assert len(errors(profile)) == 1


def test_a_profile_that_cannot_be_written(tmp_path: Path) -> None:
    code = "import shutil, sys; shutil.rmtree(sys.argv[1]); print('ran')"
    for options, expected in (((), 0), (("--strict",), 4)):
        folder = tmp_path / "results"
        folder.mkdir()
        # A snapshot that is written at this moment would keep the program from removing the folder.
        command = [sys.executable, "-m", "deepcontext", "profile", "--snapshot-interval", "0"]
        command += [*options, "-o", str(folder / "out.dcprof"), "-c", code, str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.stdout == "ran\n"
        assert "no profile written" in done.stderr
        assert done.returncode == expected
