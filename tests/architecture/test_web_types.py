"""The page's types are those of the server's answers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_s_types_are_generated_from_the_answers() -> None:
    done = subprocess.run(
        [sys.executable, "tools/write_web_types.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
