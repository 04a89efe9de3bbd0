"""The view "Source" shows the text of a program whose file is deleted: the profile holds it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.profiler.model.profile import Profile
from tests.ui.browser.conftest import FILE, WHERE, serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PROGRAM = """\
import time


def busy(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(10_000))


busy(0.5)
"""


@pytest.mark.parametrize("where", WHERE)
def test_source_of_a_deleted_program_is_shown(
    open_on: Callable[..., Any], tmp_path: Path, where: str
) -> None:
    program, path, page = (tmp_path / name for name in ("busy.py", "busy.dcprof", "page.html"))
    program.write_text(PROGRAM, encoding="utf-8")
    deepcontext = [sys.executable, "-m", "deepcontext"]
    recorded = [*deepcontext, "profile", "-q", "-o", str(path), str(program)]
    subprocess.run(recorded, check=True, timeout=120)
    program.unlink()
    subprocess.run([*deepcontext, "view", "--html", str(page), str(path)], check=True, timeout=120)
    with serving(path) as served:
        address = page.as_uri() if where == FILE else served
        with open_on(address, Profile.load(path)) as opened:
            opened.go("view=source")
            row = opened.page.wait_for_selector("tr[data-line='7'] .code-text")
            assert row.inner_text().strip() == "sum(range(10_000))"
            assert "which holds it" in opened.text(".source-head")
