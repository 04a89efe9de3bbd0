"""CONTRIBUTING.md: the steps to add a cause, an export, a table and a metric do what they say."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext import _native, collectors
from deepcontext.errors import UserError
from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from tests.fault_pairs.pairs import pair_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext.profiler.model.profile import Profile

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
CATALOGUE = "src/deepcontext/analyzers/catalogue"
PAGES = "docs/reference/analyzers"
COPIED = ("src/deepcontext", PAGES, "tests/architecture/test_analyzers.py")


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


def _write(checkout: Path, path: str) -> None:
    """Write a file that the guide shows whole."""
    (checkout / path).write_text(_shown(path), encoding="utf-8")


def _insert(checkout: Path, path: str, *lines: tuple[str, str]) -> None:
    """Insert text into a file, each time after a line: pairs of (line, text)."""
    content = (checkout / path).read_text(encoding="utf-8")
    for line, text in lines:
        assert f"{line}\n" in content
        content = content.replace(f"{line}\n", f"{line}\n{text}\n", 1)
    (checkout / path).write_text(content, encoding="utf-8")


def _append(checkout: Path, path: str) -> None:
    """Append what the guide shows to a file."""
    with (checkout / path).open("a", encoding="utf-8") as file:
        file.write(_shown(path))


def _run(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python on the copy: without `site`, whose hook would find the checkout of this test."""
    path = os.pathsep.join([str(checkout / "src"), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, "-S", *words],
        check=False,
        cwd=checkout,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
    )


def _checks_pass(checkout: Path) -> bool:
    test = "tests/architecture/test_analyzers.py"
    done = _run(checkout, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", ".", test)
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


@pytest.mark.long
def test_a_cause_is_added_in_the_steps_of_the_guide(checkout: Path, drawing: Path) -> None:
    def analyze() -> str:
        words = ("analyze", "--only", "cheaper_operator", str(drawing))
        return _run(checkout, "-m", "deepcontext", *words).stdout

    assert "random numbers" not in analyze()
    _append(checkout, f"{CATALOGUE}/tables.toml")
    assert not _checks_pass(checkout)
    _append(checkout, f"{CATALOGUE}/operators.toml")
    assert "train.py:3 (main) draws random numbers for 60% of the time in operators" in analyze()
    assert _checks_pass(checkout)
    (row,) = tomllib.loads(_shown("tests/fault_pairs/pairs.toml"))["pair"]
    assert pair_of(row).name == "random_numbers"


def test_an_export_is_added_in_the_steps_of_the_guide(checkout: Path, drawing: Path) -> None:
    def export() -> int:
        words = ("export", "--format", "sums", str(drawing))
        return _run(checkout, "-m", "deepcontext", *words).returncode

    _write(checkout, "src/deepcontext/ui/export/sums.py")
    assert export() == UserError.exit_code
    names = 'FORMATS: Final = ("pprof", "speedscope", "collapsed", "parquet"'
    listing = checkout / "src/deepcontext/ui/export/__init__.py"
    text = listing.read_text(encoding="utf-8")
    listing.write_text(text.replace(names, f'{names}, "sums"'), encoding="utf-8")
    assert export() == 0
    assert (checkout / "drawing.sum").read_bytes() == b"sum: 100000000\n"


_SHOWN_TABLES = """
import sys
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries.comparison import compare
from deepcontext.ui.report import report_to_dict
from deepcontext.ui.web.columns import engine_profile
profile = Profile.load(sys.argv[1])
page = engine_profile(profile)
rows = page.columns["table_thread_example"]
compared = "threads" in compare(profile, profile).tables
report = report_to_dict(profile, limit=1)["threads"]
print([profile.frames[row].name for row in rows.tolist()], compared, report["rows"][0]["inclusive"])
"""


def test_a_table_is_added_in_the_steps_of_the_guide(checkout: Path, drawing: Path) -> None:
    summaries = "src/deepcontext/profiler/summaries"
    _write(checkout, f"{summaries}/threads.py")
    _insert(
        checkout,
        f"{summaries}/tables.py",
        (
            "from deepcontext.profiler.summaries.scopes import by_scope",
            "from deepcontext.profiler.summaries.threads import by_thread",
        ),
        ("    for table in (", _shown(f"{summaries}/tables.py").rstrip()),
    )
    done = _run(checkout, "-c", _SHOWN_TABLES, str(drawing))
    assert done.stdout == "['MainThread'] True 100000000\n", done.stderr


# Names from before the rule.
_WITHOUT_A_UNIT = {"flops", "bytes_moved", "stall_samples"}


def test_every_metric_follows_the_steps_of_the_guide() -> None:
    core = "".join(path.read_text("utf-8") for path in (ROOT / "native").rglob("*.cpp"))
    pages = "".join(path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md"))
    for metric in {metric for each in collectors.ALL for metric in each().metrics}:
        assert metric.name.endswith(f"_{metric.unit}") or metric.name in _WITHOUT_A_UNIT
        # the metrics of memory are the same for the host and, with the prefix, for devices
        name = metric.name.removeprefix("gpu_") if "bytes" in metric.name else metric.name
        assert f'"{name}"' in core, f"the native core does not record '{metric.name}'"
        assert name in pages, f"no page in docs/ explains '{metric.name}'"
