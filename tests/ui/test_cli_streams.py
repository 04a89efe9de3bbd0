"""Every command that prints, with a standard output that is full, closed, or a pipe without reader."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = {
    "report": ["report", "train.dcprof"],
    "report --json": ["report", "--json", "train.dcprof"],
    "report --summary": ["report", "--summary", "train.dcprof"],
    "analyze": ["analyze", "train.dcprof"],
    "analyze --json": ["analyze", "--json", "train.dcprof"],
    "analyze --markdown": ["analyze", "--markdown", "train.dcprof"],
    "diff": ["diff", "train.dcprof", "troubled.dcprof"],
    "diff --json": ["diff", "--json", "train.dcprof", "troubled.dcprof"],
    "doctor": ["doctor"],
    "export": ["export", "train.dcprof", "--format", "collapsed", "-o", "-"],
    "export to a file": ["export", "train.dcprof", "--format", "pprof", "-o", "x"],
    "merge": ["merge", "train.dcprof", "empty.dcprof", "-o", "-"],
    "view --html": ["view", "train.dcprof", "--html", "-"],
    "view": ["view", "--no-browser", "train.dcprof"],
    "--help": ["--help"],
    "report --help": ["report", "--help"],
    "--version": ["--version"],
}
# Runs each command in its own forked child, which inherits the modules that commands need.
DRIVER = """
import io, json, os, sys
from deepcontext.ui.cli import app
import deepcontext.ui.report, deepcontext.ui.export.pprof, deepcontext.ui.web.app, rich.console

def child(words, output):
    if output == "pipe":
        read, written = os.pipe()
        os.close(read)
    else:
        written = os.open("/dev/full", os.O_WRONLY)
    os.dup2(written, 1)
    os.dup2(os.open("errors", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    if output == "closed":
        os.close(1)
        sys.stdout = None
    sys.exit(app.main(words))

found = {}
for output in ("pipe", "full", "closed"):
    for name, words in json.loads(sys.argv[1]).items():
        process = os.fork()
        if not process:
            child(words, output)
        _, status = os.waitpid(process, 0)
        with open("errors") as errors:
            found[f"{name} {output}"] = (os.waitstatus_to_exitcode(status), errors.read())
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def kept_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("streams")


@pytest.fixture
def ends(training_folder: Path, kept_folder: Path) -> dict[str, Any]:
    """Return how each command ended with each kind of output; each runs once."""
    kept = kept_folder / "ends.json"
    if not kept.exists():
        words = [sys.executable, "-c", DRIVER, json.dumps(COMMANDS)]
        done = subprocess.run(
            words, capture_output=True, text=True, check=True, cwd=training_folder, timeout=120
        )
        kept.write_text(done.stdout, encoding="utf-8")
    ends: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
    return ends


@pytest.mark.long
@pytest.mark.parametrize("name", COMMANDS)
def test_a_pipe_without_a_reader_ends_the_command_as_any_program(
    ends: dict[str, Any], name: str
) -> None:
    code, errors = ends[f"{name} pipe"]
    assert code == -13, errors
    assert errors in {"", "Ctrl-C ends it\n"} or errors.startswith("note: ")


@pytest.mark.long
@pytest.mark.parametrize("output", ["full", "closed"])
@pytest.mark.parametrize("name", COMMANDS)
def test_output_that_cannot_be_written_is_one_error(
    ends: dict[str, Any], name: str, output: str
) -> None:
    code, errors = ends[f"{name} {output}"]
    reason = "No space left on device" if output == "full" else "it is closed"
    last = errors.splitlines()[-1]
    assert last.startswith(f"error: cannot write to standard output: {reason}; ")
    assert code == 4
    assert "Traceback" not in errors
    assert all(line.startswith("note: ") for line in errors.splitlines()[:-1])


@pytest.mark.parametrize("words", [["report"], ["report", "--json"]], ids=" ".join)
def test_head_ends_the_command_as_it_ends_git_log(training_folder: Path, words: list[str]) -> None:
    command = f"'{sys.executable}' -m deepcontext {' '.join(words)} train.dcprof | true"
    shell = ["bash", "-c", f"{command}; echo ${{PIPESTATUS[0]}}"]
    done = subprocess.run(
        shell, capture_output=True, text=True, check=True, cwd=training_folder, timeout=60
    )
    assert (done.stdout, done.stderr) == ("141\n", "")


@pytest.mark.parametrize(
    ("redirection", "code", "errors"),
    [
        (">&-", 4, "error: cannot write to standard output: it is closed; "),
        ("> /dev/full", 4, "error: cannot write to standard output: No space left on device; "),
        ("2>&-", 0, ""),
        ("2> /dev/full", 0, ""),
        (">&- 2>&-", 4, ""),
        ("<&-", 0, ""),
    ],
)
def test_streams_as_a_shell_makes_them(
    training_folder: Path, redirection: str, code: int, errors: str
) -> None:
    command = f"'{sys.executable}' -m deepcontext export train.dcprof --format pprof -o out"
    done = subprocess.run(
        ["bash", "-c", f"{command} {redirection}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=training_folder,
    )
    assert done.returncode == code
    assert done.stderr.startswith(errors)
    assert bool(done.stderr) == bool(errors)
    assert (training_folder / "out").read_bytes()[:2] == b"\x1f\x8b", "the file is whole"


@pytest.mark.parametrize("redirection", ["2>&-", "2> /dev/full"])
def test_an_error_that_cannot_be_printed_keeps_the_exit_code(
    training_folder: Path, redirection: str
) -> None:
    command = f"'{sys.executable}' -m deepcontext report lost.dcprof {redirection}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, check=False, cwd=training_folder
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, b"", b"")


def test_names_that_the_terminal_cannot_show_are_escaped(training_folder: Path) -> None:
    words = ["export", "train.dcprof", "--format", "collapsed", "-o", "\udcffz\u00e9"]
    done = subprocess.run(
        [sys.executable, "-m", "deepcontext", *words],
        capture_output=True,
        check=False,
        cwd=training_folder,
        env={"PYTHONIOENCODING": "ascii", "PATH": "/usr/bin:/bin"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"written to '")
