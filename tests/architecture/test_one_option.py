"""A collector with an option of its own touches three files, and everything else follows.

The three edits are made in a copy of the package; that copy is then used as a person would.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import deepcontext
from deepcontext import _native

COLLECTOR = '''
"""Shows what a collector gets from its option."""

from deepcontext.profiler.format.status import Outcome, Status
from deepcontext.profiler.recording.collector import Availability


class Example:
    name = "example"
    phase_rules = ()
    metrics = ()

    def probe(self):
        return Availability(available=True)

    def start(self, options):
        self._limit = options.example_limit

    def stop(self):
        pass

    def settle(self):
        pass

    def outcome(self):
        return Outcome(Status.RAN, f"{self._limit + 1} is too many")

    def sections(self):
        return {}
'''
DECLARATION = """
    example_limit: int = _option(
        default=10,
        meaning="count at most so many examples",
        rule=Range(1, 99, "examples", is_whole=True),
        placeholder="COUNT",
        collectors=("example",),
    )

    @classmethod
    def of("""
# File, what stands there, what takes its place.
EDITS = (
    ("collectors/example.py", "", COLLECTOR),
    (
        "collectors/__init__.py",
        "\nif TYPE_CHECKING:",
        "\nfrom deepcontext.collectors.example import Example\n\nif TYPE_CHECKING:",
    ),
    ("collectors/__init__.py", "    PythonFrames,\n", "    PythonFrames,\n    Example,\n"),
    ("profiler/recording/options.py", "\n    @classmethod\n    def of(", DECLARATION),
    (
        "profiler/recording/options.py",
        "(TypedDict, total=False):\n",
        "(TypedDict, total=False):\n    example_limit: int\n",
    ),
)
FROM_PYTHON = """
import inspect
import deepcontext

print(inspect.signature(deepcontext.start).parameters["example_limit"])
print("count at most so many examples" in deepcontext.start.__doc__)
with deepcontext.profile("python.dcprof", example_limit=5):
    pass
try:
    deepcontext.start(example_limit=0)
except deepcontext.errors.UserError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """An interpreter that finds the changed copy, and after it whatever this one has installed."""
    folder = tmp_path_factory.mktemp("changed")
    package = folder / "deepcontext"
    source = Path(deepcontext.__file__).parent
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    assert _native.__file__
    (package / Path(_native.__file__).name).symlink_to(_native.__file__)
    for name, old, new in EDITS:
        file = package / name
        text = file.read_text(encoding="utf-8") if old else ""
        assert text.count(old) == 1 or not old, (name, old)
        file.write_text(text.replace(old, new) if old else new, encoding="utf-8")
    # Of its own, because an editable installation comes before any folder on the path.
    venv.create(folder / "python", symlinks=True)
    installed = [entry for entry in sys.path if entry.endswith("-packages")]
    path = os.pathsep.join([str(folder), *installed])
    return ["env", f"PYTHONPATH={path}", "COLUMNS=200", str(folder / "python" / "bin" / "python")]


def _run(words: list[str], folder: Path) -> str:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _found(file: Path) -> tuple[str, str]:
    profile = deepcontext.Profile.load(file)
    (report,) = (each for each in profile.trust.collectors if each.name == "example")
    return profile.run.options["example_limit"], report.reason


def test_a_collector_with_an_option_touches_three_files() -> None:
    assert len({name for name, _, _ in EDITS}) == 3


def test_the_command_line_has_the_option_and_the_collector_its_value(
    python: list[str], tmp_path: Path
) -> None:
    command = [*python, "-m", "deepcontext"]
    for name in ("profile", "overhead"):
        text = _run([*command, name, "--help"], tmp_path)
        assert "--example-limit COUNT" in text
        assert "count at most so many examples (default: 10)" in text
    for words, found in (([], ("10", "11")), (["--example-limit", "3"], ("3", "4"))):
        _run([*command, "profile", "-q", *words, "-o", "x.dcprof", "-c", "pass"], tmp_path)
        assert _found(tmp_path / "x.dcprof") == (found[0], f"{found[1]} is too many")
    assert "available; option --example-limit" in _run([*command, "doctor"], tmp_path)


def test_python_has_the_option_and_the_collector_its_value(
    python: list[str], tmp_path: Path
) -> None:
    assert _run([*python, "-c", FROM_PYTHON], tmp_path).splitlines() == [
        "example_limit: int = 10",
        "True",
        "option example_limit: expected a whole number from 1 to 99 (examples), found 0",
    ]
    assert _found(tmp_path / "python.dcprof") == ("5", "6 is too many")


def test_the_reference_page_has_the_option(python: list[str], tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    root = Path(__file__).parents[2]
    shutil.copy(root / "tools" / "write_cli_reference.py", tools)
    _run([*python, "tools/write_cli_reference.py"], tmp_path)
    page = (tmp_path / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    assert (
        page.count("| `--example-limit COUNT` | count at most so many examples (default: 10) |")
        == 2
    )
