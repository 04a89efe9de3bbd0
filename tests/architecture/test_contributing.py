"""CONTRIBUTING.md, "Add an analyzer": following the steps gives an analyzer that passes the checks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext import _native
from deepcontext.profiler.format.frame import Frame, FrameKind, Phase

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext.profiler.model.profile import Profile

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
NAME = "random_numbers"
ANALYZERS = "src/deepcontext/analyzers"
PAGES = "docs/reference/analyzers"
COPIED = ("src/deepcontext", PAGES, "tests/analyzers", "tests/architecture/test_analyzers.py")


def _shown(path: str) -> str:
    """Return the text of a file that the guide shows, below a comment with its path."""
    pattern = rf"^```\w+\n(?:# |<!-- ){re.escape(path)}(?: -->)?\n(.*?)^```$"
    found = re.search(pattern, GUIDE, re.MULTILINE | re.DOTALL)
    assert found, f"CONTRIBUTING.md does not show '{path}'"
    return found[1]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a copy of what the steps change."""
    for path in COPIED:
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / path).is_dir():
            shutil.copytree(ROOT / path, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / path, target)
    native = Path(str(_native.__file__))
    if not (tmp_path / "src/deepcontext" / native.name).exists():
        shutil.copy(native, tmp_path / "src/deepcontext")
    return tmp_path


def _write_analyzer(checkout: Path) -> None:
    path = f"{ANALYZERS}/{NAME}.py"
    (checkout / path).write_text(_shown(path), encoding="utf-8")


def _list_it(checkout: Path) -> None:
    listing = checkout / ANALYZERS / "__init__.py"
    text = listing.read_text(encoding="utf-8")
    text = text.replace("    precision,\n", f"    precision,\n    {NAME},\n", 1)
    text = text.replace(
        "    precision.ANALYZER,\n", f"    precision.ANALYZER,\n    {NAME}.ANALYZER,\n"
    )
    listing.write_text(text, encoding="utf-8")


def _document_it(checkout: Path) -> None:
    page = f"{PAGES}/{NAME}.md"
    (checkout / page).write_text(_shown(page), encoding="utf-8")
    with (checkout / PAGES / "README.md").open("a", encoding="utf-8") as table:
        table.write(_shown(f"{PAGES}/README.md"))


def _test_it(checkout: Path) -> None:
    cases = checkout / "tests/analyzers/test_cases.py"
    text = cases.read_text(encoding="utf-8")
    row = _shown("tests/analyzers/test_cases.py")
    cases.write_text(text.replace("CASES = [\n", f"CASES = [\n{row}"), encoding="utf-8")


def _run(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a module on the copy: without `site`, whose hook would find the checkout of this test."""
    path = os.pathsep.join([str(checkout / "src"), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, "-S", "-m", *words],
        check=False,
        cwd=checkout,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
    )


def _checks_pass(checkout: Path) -> bool:
    test = "tests/architecture/test_analyzers.py"
    done = _run(checkout, "pytest", "-q", "-c", os.devnull, "--rootdir", ".", test)
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    return done.returncode == 0


@pytest.fixture
def drawing(make_profile: Callable[..., Profile], tmp_path: Path) -> Path:
    """Return a profile of a program that draws random numbers for most of its time."""
    frames = [
        Frame(FrameKind.THREAD, "MainThread"),
        Frame(FrameKind.PYTHON, "main", "train.py", 3),
        Frame(FrameKind.OPERATOR, "aten::randn"),
        Frame(FrameKind.OPERATOR, "aten::mm"),
    ]
    times: dict[str, Any] = {"host_time_ns": {2: 60_000_000, 3: 40_000_000}}
    phases = [Phase.NONE, Phase.NONE, Phase.OTHER, Phase.FORWARD]
    path = tmp_path / "drawing.dcprof"
    make_profile([0, 0, 1, 1], frames, phases=phases, **times).save(path)
    return path


def test_an_analyzer_is_added_in_the_steps_of_the_guide(checkout: Path, drawing: Path) -> None:
    def analyze() -> str:
        return _run(checkout, "deepcontext", "analyze", "--only", NAME, str(drawing)).stdout

    _write_analyzer(checkout)
    assert "drawing random numbers" not in analyze()
    _list_it(checkout)
    assert "drawing random numbers takes 60% of the time in operators" in analyze()
    # The checks ask for the other steps.
    _document_it(checkout)
    assert not _checks_pass(checkout)
    _test_it(checkout)
    assert _checks_pass(checkout)
