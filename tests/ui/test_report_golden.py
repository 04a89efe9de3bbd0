"""The reports as a user sees them. A golden file's name is the command that made it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

COMMANDS = [
    "COLUMNS=60 deepcontext report train.dcprof --limit 6",
    "COLUMNS=100 deepcontext report train.dcprof",
    "COLUMNS=160 deepcontext report train.dcprof --full",
    "COLUMNS=100 PYTHONIOENCODING=ascii deepcontext report train.dcprof --limit 4",
    "COLUMNS=100 deepcontext report troubled.dcprof --limit 2",
    "COLUMNS=100 deepcontext report empty.dcprof",
    "COLUMNS=60 deepcontext report train.dcprof --summary",
    "COLUMNS=100 deepcontext report train.dcprof --summary",
    "COLUMNS=100 deepcontext report troubled.dcprof --summary",
    "COLUMNS=100 deepcontext report empty.dcprof --summary",
    "COLUMNS=100 deepcontext report plain.dcprof",
    "COLUMNS=100 deepcontext report plain.dcprof --full",
    "COLUMNS=60 deepcontext report plain.dcprof --summary",
    "COLUMNS=100 deepcontext report plain.dcprof --summary",
    "COLUMNS=100 deepcontext report left.dcprof --limit 4",
    "COLUMNS=100 deepcontext report left.dcprof --summary",
    "COLUMNS=100 deepcontext report spawned.dcprof --summary",
    "deepcontext report train.dcprof --json --limit 2",
]


@pytest.mark.long
@pytest.mark.parametrize("command", COMMANDS)
def test_report(command: str, training_folder: Path, golden: Callable[[str, str], None]) -> None:
    words = shlex.split(command)
    program = words.index("deepcontext")
    settings = dict(assignment.split("=") for assignment in words[:program])
    environment = {k: v for k, v in os.environ.items() if k not in {"FORCE_COLOR", "NO_COLOR"}}
    done = subprocess.run(
        [sys.executable, "-m", *words[program:]],
        cwd=training_folder,
        env={**environment, "PYTHONIOENCODING": "utf-8", **settings},
        capture_output=True,
        check=True,
    )
    assert done.stderr == b""
    text = done.stdout.decode("ascii" if "ascii" in command else "utf-8")
    golden(command, text.replace(str(training_folder), "/folder"))
