"""Run a program under `deepcontext profile`, as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, NamedTuple

from deepcontext.profiler.model.profile import Profile

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_TIMEOUT_S = 300


class Profiled(NamedTuple):
    """What a program left."""

    profile: Profile
    stdout: str
    stderr: str


def profiled(
    folder: Path, program: str, *options: str, environment: Mapping[str, str] | None = None
) -> Profiled:
    """Profile `program.py` in a folder, with options; fail if its exit code is not 0."""
    (folder / "program.py").write_text(textwrap.dedent(program), encoding="utf-8")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "deepcontext",
            "profile",
            "-o",
            "out.dcprof",
            *options,
            "program.py",
        ],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr
    return Profiled(Profile.load(folder / "out.dcprof"), done.stdout, done.stderr)
