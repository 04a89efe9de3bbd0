"""The reports of real programs, as a user reads them: one screen each, with the answer on it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from deepcontext.profiler.model.profile import Profile
from tests.fault_pairs.store import moved
from tests.real_programs.record import COMMANDS, FOLDER, PROFILES, copy_programs

if TYPE_CHECKING:
    from collections.abc import Callable

# Recorded on hardware.
_VISIT: Final = Path(__file__).parents[2] / "benchmarks" / "visits" / "2026-11-26-h100"
_MOST_LINES: Final = 80


def _report(profile: Path) -> str:
    settings = {"COLUMNS": "80", "PYTHONIOENCODING": "utf-8", "XDG_CACHE_HOME": str(profile.parent)}
    environment = {k: v for k, v in os.environ.items() if k not in {"FORCE_COLOR", "NO_COLOR"}}
    done = subprocess.run(
        [sys.executable, "-m", "deepcontext", "report", profile.name],
        cwd=profile.parent,
        env={**environment, **settings},
        capture_output=True,
        check=True,
    )
    assert done.stderr == b""
    return done.stdout.decode()


@pytest.mark.parametrize("name", COMMANDS)
def test_report_of_a_program(name: str, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    copy_programs(tmp_path)
    profile = moved(Profile.load(PROFILES / f"{name}.dcprof"), {FOLDER: str(tmp_path)})
    profile.save(tmp_path / f"{name}.dcprof")

    text = _report(tmp_path / f"{name}.dcprof").replace(str(tmp_path), FOLDER)

    golden(f"deepcontext report {name}.dcprof", text)
    assert text.count("\n") <= _MOST_LINES


@pytest.mark.parametrize("name", ["decode", "gpt2", "jax"])
def test_report_of_an_h100(name: str, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    (tmp_path / f"{name}.dcprof").write_bytes((_VISIT / f"{name}.dcprof").read_bytes())

    text = _report(tmp_path / f"{name}.dcprof")

    golden(f"deepcontext report {name}.dcprof", text)
    assert text.count("\n") <= _MOST_LINES
