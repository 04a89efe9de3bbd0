"""Run third-party programs under `deepcontext profile`, unmodified."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

import deepcontext

if TYPE_CHECKING:
    from pathlib import Path

_TIMEOUT_S = 900.0


@dataclass(frozen=True)
class Program:
    """A program in an empty folder."""

    folder: Path

    def profile(self, source: str, **environment: str) -> tuple[str, deepcontext.Profile]:
        """Run it plain and profiled; assert equal output; return that and the profile."""
        (self.folder / "program.py").write_text(source, encoding="utf-8")
        plain = self._run(["program.py"], environment)
        words = ["-m", "deepcontext", "profile", "--no-report", "-o", "out.dcprof", "program.py"]
        profiled = self._run(words, environment)
        assert profiled == plain
        return profiled, deepcontext.Profile.load(self.folder / "out.dcprof")

    def _run(self, words: list[str], environment: dict[str, str]) -> str:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=self.folder,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_S,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """A third-party program."""
    return Program(tmp_path)
