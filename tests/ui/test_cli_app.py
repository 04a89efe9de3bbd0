"""The command line as a whole: help, exit codes, mistyped words."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from deepcontext.errors import (
    DeepContextError,
    EnvironmentProblem,
    ProfileDataError,
    SessionError,
    UserError,
)
from deepcontext.ui.cli import app, profile
from deepcontext.ui.cli.command import Command, Parser

ROOT = Path(__file__).resolve().parents[2]
NAMES = [command.name for command in app.COMMANDS]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "deepcontext", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_help_lists_every_command_with_its_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["--help"]) == 0
    text = capsys.readouterr().out
    for command in app.COMMANDS:
        assert re.search(rf"^  {command.name} +{re.escape(command.summary)}$", text, re.MULTILINE)


def test_help_loads_no_command() -> None:
    # Each of these takes longer to import than everything that the help needs.
    code = (
        "import sys; from deepcontext.ui.cli import app; app.main(['--help']); "
        "print([name for name in sys.modules if name in sys.argv[1:]], file=sys.stderr)"
    )
    heavy = ["numpy", "rich", "subprocess", "importlib.metadata", "zipfile"]
    modules = [f"deepcontext.ui.cli.{name}" for name in NAMES]
    result = subprocess.run(
        [sys.executable, "-c", code, *heavy, *modules],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert result.stderr.strip() == "[]"


def test_no_arguments_is_an_error_that_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main([]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "usage: deepcontext" in captured.err


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["help"], ["--help"]),
        (["version"], ["--version"]),
        (["help", "report"], ["report", "--help"]),
    ],
    ids=str,
)
def test_help_and_version_may_be_commands(
    words: list[str], options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.main(words) == 0
    text = capsys.readouterr().out
    assert app.main(options) == 0
    assert text == capsys.readouterr().out != ""
    assert app.main([*words, "more", "words"]) == 2


def test_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    import tomllib

    assert app.main(["--version"]) == 0
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert capsys.readouterr().out == f"deepcontext {project['version']}\n"


@pytest.mark.parametrize("name", NAMES)
def test_help_of_a_command_has_examples_and_exit_codes(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.main([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"usage: deepcontext {name}" in text
    assert f"examples:\n  deepcontext {name}" in text
    assert "exit codes:" in text


@pytest.mark.parametrize("command", app.COMMANDS, ids=NAMES)
def test_help_explains_every_option(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    app.main([command.name, "--help"])
    text = " ".join(capsys.readouterr().out.split())
    for action in command.parser().actions:
        assert action.help, action
        assert " ".join(action.help.split())[:40] in text
        for name in action.option_strings:
            assert name in text


def test_every_option_that_the_documentation_names_exists() -> None:
    known = {"--help", "--version"}
    for command in app.COMMANDS:
        known |= {name for action in command.parser().actions for name in action.option_strings}
    pages = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    assert pages
    for page in pages:
        for line in page.read_text(encoding="utf-8").splitlines():
            found = re.match(rf"^\s*\$? ?deepcontext ({'|'.join(NAMES)}) (.*)", line)
            words = found.group(2).split() if found else []
            if found and found.group(1) == "profile":
                words, _ = profile.make_parser().split_program(words)
            own = [word for word in _before_program(words) if word.startswith("--")]
            assert {word.partition("=")[0] for word in own} <= known, (page, line)


def _before_program(words: list[str]) -> list[str]:
    ends = [i for i, word in enumerate(words) if word.endswith((".py", ".dcprof")) or word == "-m"]
    return words[: min(ends, default=len(words))]


@pytest.mark.parametrize("tool", ["write_cli_reference.py", "write_python_reference.py"])
def test_reference_page_is_up_to_date(tool: str) -> None:
    command = [sys.executable, str(ROOT / "tools" / tool), "--check"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("porfile", "did you mean 'profile'"),
        ("reprot", "did you mean 'report'"),
        ("train.py", "did you mean 'deepcontext profile train.py'"),
        ("zzz", f"commands are {', '.join(NAMES)}"),
        ("Profile", "did you mean 'profile'"),
        ("", "commands are"),
    ],
)
def test_unknown_command_names_the_likely_one(
    word: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.main([word]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: unknown command '{word}'")
    assert error.count("\n") == 1
    assert hint in error


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--verison"], "unknown option '--verison', did you mean '--version'"),
        (["--version", "x"], "unknown argument 'x'"),
        (["report"], "the following arguments are required: FILE"),
        (["report", "a.dcprof", "--lmit", "3"], "unknown option '--lmit', did you mean '--limit'"),
        (["report", "a.dcprof", "--limi", "3"], "unknown option '--limi', did you mean '--limit'"),
        (["report", "a.dcprof", "--limit"], "argument --limit: expected one argument"),
        (["report", "a.dcprof", "--limit", "0"], "whole number of at least 1, found '0'"),
        (["report", "a.dcprof", "--limit", "-3"], "whole number of at least 1, found '-3'"),
        (["report", "a.dcprof", "--limit", "1.5"], "whole number of at least 1, found '1.5'"),
        (["report", "a.dcprof", "--limit", "٣x"], "whole number of at least 1, found '٣x'"),
        (["report", "a.dcprof", "b.dcprof"], "unknown argument 'b.dcprof'"),
        (["doctor", "now"], "unknown argument 'now'"),
        (["doctor", "--jason"], "did you mean '--json'"),
        (["overhead"], "no program given: expected a script, -m MODULE or -c CODE"),
        (["overhead", "--pairs", "0", "x.py"], "whole number of at least 1, found '0'"),
        (["overhead", "--max-ratio", "fast", "x.py"], "number above 0, found 'fast'"),
        (["overhead", "--max-ratio", "nan", "x.py"], "number above 0, found 'nan'"),
        (["profile", "-m"], "option -m: expected the name of a module after it"),
        (["profile", "--", "-c"], "option -c: expected a piece of code after it"),
        (
            ["profile", "--snapshot-interval", "-1", "x.py"],
            "--snapshot-interval: expected a number from 0 to 1,000,000 (seconds; 0 to write only at",
        ),
        (["profile", "--snapshot-interval", "inf", "x.py"], "found inf"),
        (["profile", "--node-limit", "0", "x.py"], "--node-limit: expected a whole number from 1"),
        (["profile", "--node-limit", "2.5", "x.py"], "found 2.5"),
        (["profile", "--snapshot-interval", "soon", "x.py"], "found 'soon'"),
        (
            ["profile", "--cpu-rate", "nan", "x.py"],
            "from 0 to 1,000 (samples a second; 0 for none)",
        ),
        (["overhead", "--cpu-rate", "1001", "x.py"], "found 1001;"),
        (["profile", "--counters", "cycle", "x.py"], "no counter 'cycle'; known are cycles, "),
        (["profile", "--shape", "x.py"], "unknown option '--shape', did you mean '--shapes'"),
        (["profile", "-o"], "argument -o/--output: expected one argument"),
    ],
    ids=" ".join,
)
def test_wrong_arguments_give_one_line_that_says_what_was_expected(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    assert message in captured.err
    assert "--help'" in captured.err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UserError("asked for too much"), 2),
        (SessionError("running already"), 2),
        (EnvironmentProblem("no such library"), 4),
        (ProfileDataError("damaged at offset 3"), 5),
        (DeepContextError("odd"), 70),
        (KeyboardInterrupt(), 130),
        (ZeroDivisionError("by zero"), 70),
    ],
    ids=lambda value: type(value).__name__,
)
def test_exit_code_follows_the_class_of_the_error(
    error: BaseException,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(_: object) -> int:
        raise error

    def parser() -> Parser:
        return Parser("deepcontext fail", usage="", description="", epilog="")

    monkeypatch.setattr(app, "COMMANDS", (Command("fail", "fails", parser, fail),))
    assert app.main(["fail"]) == code
    text = capsys.readouterr().err
    match error:
        case DeepContextError():
            assert text == f"error: {error}\n"
        case KeyboardInterrupt():
            assert text == ""
        case _:
            assert text.startswith("Traceback")
            assert text.endswith(
                "error: ZeroDivisionError is a bug of deepcontext; report it with the lines above\n"
            )


def test_python_dash_m_is_the_same_program() -> None:
    listed = run("--help")
    assert listed.returncode == 0
    assert listed.stderr == ""
    mistaken = run("porfile")
    assert (mistaken.returncode, mistaken.stdout) == (2, "")


def test_command_line_starts_without_heavy_libraries() -> None:
    code = (
        "import sys; from deepcontext.ui.cli.app import main; main(['profile', '--help']);"
        "print([m for m in ('numpy', 'rich', 'flask', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("\n[]\n")
