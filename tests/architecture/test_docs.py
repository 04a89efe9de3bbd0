"""What the documentation shows is run, and what it names exists.

Blocks marked ``console`` hold commands in lines that begin with "$ "; those of deepcontext are run,
with two pairs where they ask for more. Lines below a command are its output, which must be that of
the run, up to numbers; a line "..." stands for lines that are not shown. Blocks marked ``python``
are run, too, unless their first line is a comment with a file name: then the block is that file.
The blocks of one page share a folder, which holds a `train.py` and `examples/`. A comment
``<!-- tested: FILE -->`` before a block says that the test in FILE runs it.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from deepcontext.ui.cli import profile
from deepcontext.ui.cli.app import COMMANDS, build_parser

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(ROOT.glob("*/README.md")),
]
# No import of a framework: a page about the command line costs no more than the command line.
TRAIN = "import sys\nprint('epochs', sys.argv[1:])\n"
PACKAGE = ROOT / "src" / "deepcontext"
_BASES = (ROOT, PACKAGE, PACKAGE / "profiler", ROOT / "native", ROOT / "web" / "src")
_FOLDERS = {folder.name for base in _BASES for folder in base.iterdir() if folder.is_dir()}
BLOCK = re.compile(r"^(?:<!-- tested: (\S+) -->\n)?```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTIONS = {
    command.name: {name for action in command.parser().actions for name in action.option_strings}
    | {"-h", "--help"}
    for command in COMMANDS
}


@dataclass(frozen=True)
class Step:
    """Something a page makes its reader do: a file to save, a program or a command to run."""

    kind: str
    text: str
    output: str = ""  # what the page shows of it


def _steps(page: Path) -> list[Step]:
    steps = []
    for test, language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if test:
            assert (ROOT / test).exists(), f"{page.name}: there is no '{test}'"
            continue
        name = re.match(r"# (\w+\.py)\n", text)
        if language == "python":
            steps.append(Step(f"file {name[1]}" if name else "program", text))
        elif language == "console":
            before, *commands = re.split(r"^\$ ", text, flags=re.MULTILINE)
            assert commands, f"{page.name}: a console block without a line that begins with '$ '"
            assert not before, f"{page.name}: a console block that does not begin with '$ '"
            for command in commands:
                line, _, output = command.partition("\n")
                steps.append(Step("command", line, output))
    return steps


def _relative(page: Path) -> str:
    return str(page.relative_to(ROOT))


# Pages that train a model, twice as a rule.
LONG = {
    *(ROOT / "docs" / "tutorials").glob("*.md"),
    ROOT / "docs" / "how-to" / "profile-jax.md",
}
RUNNABLE = [page for page in PAGES if _steps(page)]


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.long if page in LONG else ()) for page in RUNNABLE],
    ids=_relative,
)
def test_commands_and_programs_run(page: Path, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN, encoding="utf-8")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for step in _steps(page):
        if step.kind.startswith("file "):
            # A quarter of thousands of steps: a mean step, which the page shows, is the same.
            text = re.sub(r"range\((\d+)000\)", r"range(\g<1>000 // 4)", step.text)
            (tmp_path / step.kind.removeprefix("file ")).write_text(text, encoding="utf-8")
        elif step.kind == "program":
            _run([sys.executable, "-c", step.text], tmp_path, step.text)
        else:
            _run_command(step, tmp_path)


def _run_command(step: Step, folder: Path) -> None:
    command, _, target = step.text.partition(" > ")
    words = shlex.split(re.sub(r"--pairs \d+", "--pairs 2", command))
    if words[0] == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        assert re.search(rf"^{re.escape(words[1])}:", makefile, re.MULTILINE), command
        return
    if words == ["pip", "install", "."]:
        return  # this environment was made so
    assert words[0] == "deepcontext", f"no test can run '{command}'"
    done = _run([sys.executable, "-m", *words], folder, command)
    if target:
        (folder / target).write_bytes(done.stdout)
    if step.output:
        _check_shown(step, (done.stdout + done.stderr).decode())


def _run(words: list[str], folder: Path, what: str) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100"}
    done = subprocess.run(words, check=False, cwd=folder, env=environment, capture_output=True)
    # 3: a limit that was asked for is exceeded; what the page shows has run all the same.
    allowed = {0, 3} if "--max-ratio" in what else {0}
    assert done.returncode in allowed, f"{what}\n{done.stderr.decode()}"
    return done


def _check_shown(step: Step, printed: str) -> None:
    """Compare what a page shows with what was printed.

    Rows of a table are ordered by their figures, so that the order of lines is not compared.
    """
    unshown = [line for line in printed.splitlines() if line.strip()]
    # Where a sentence is wrapped depends on its figures.
    shown_text, printed_text = _without_numbers(step.output), _without_numbers(printed)
    for line in step.output.splitlines():
        if not line.strip() or line.strip() == "...":
            continue
        found = next((each for each in unshown if _are_alike(line, each)), None)
        is_shown = found is not None or _without_numbers(line) in printed_text
        assert is_shown, f"'{step.text}' no longer prints\n{line}\nbut\n{printed}"
        if found is not None:
            unshown.remove(found)
    if "..." not in step.output.split():
        unshown = [line for line in unshown if _without_numbers(line) not in shown_text]
        assert unshown == [], f"'{step.text}' prints lines that the page does not show"


def _are_alike(shown: str, printed: str) -> bool:
    """Say whether two lines differ in nothing but numbers and where a text was cut off."""
    left, right = _without_numbers(shown), _without_numbers(printed)
    if "…" not in left + right:
        return left == right
    return all(
        a == b for a, b in zip(left.partition("…")[0], right.partition("…")[0], strict=False)
    )


def _without_numbers(line: str) -> str:
    line = re.sub(r"[█▓▒░▚·]{2,}", "BAR", line)
    line = re.sub(r"(?<= )-(?= |$)", "N", line)  # a cell without a figure
    # A number and its unit; but no part of a name, and no line of a file (train.py:10).
    line = re.sub(r"(?:< )?(?<![\w.:])[-+]?\d[\d.,]*(?: (?:[num]?s|[kM]|[KMG]iB|B)\b)?", "N", line)
    return " ".join(line.split())


@pytest.mark.parametrize(
    ("shown", "printed", "alike"),
    [
        ("  1.2 ms  83 %  train.py:9  f()", " 912 us   7 %  train.py:9  f()", True),
        ("  1.2 ms  83 %  train.py:9  f()", " 1.2 ms  83 %  train.py:8  f()", False),
        ("  self   share  line", "  self   share  source", False),
        ("  ██▓▓▒▒  for GIL  -", "  ███▓▒  for GIL  1.02 M", True),
        ("  4 %  train.py:9  return imag…", "  4.1 %  train.py:9  return images", True),
        ("  4 %  train.py:9  return imag…", "  4.1 %  train.py:9  return labels", False),
    ],
)
def test_outputs_are_compared_up_to_numbers(shown: str, printed: str, *, alike: bool) -> None:
    assert _are_alike(shown, printed) is alike


@pytest.mark.parametrize(("rank", "starts"), [("0", True), ("1", False)])
def test_the_ranks_that_are_not_profiled_start_no_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rank: str, *, starts: bool
) -> None:
    page = ROOT / "docs" / "how-to" / "profile-several-processes.md"
    (program,) = (step.text for step in _steps(page) if step.kind == "program")
    # The native core is loaded with the first session.
    seen = f"{program}\nimport sys\nprint('deepcontext.collectors' in sys.modules)"
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", "2")
    done = _run([sys.executable, "-c", seen], tmp_path, program)
    assert done.stdout.decode().split() == [str(starts)]
    assert (tmp_path / "out.dcprof").exists() is starts


@pytest.mark.parametrize("page", PAGES, ids=_relative)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: broken link to '{target}'"


@pytest.mark.parametrize("page", PAGES, ids=_relative)
def test_paths_in_the_text_exist(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for name in re.findall(r"`([a-z]\w*/[\w./*]*)`", text):
        # A file that a reader is told to write, or a path that is not of this repository.
        if re.search(r"[A-Z]{4}", name) or name.partition("/")[0] not in _FOLDERS:
            continue
        bases = (*_BASES, page.parent)
        # Sources of C++ are named without their ending where there is a header, too.
        found = [path for base in bases for end in ("", ".*") for path in base.glob(f"{name}{end}")]
        assert found, f"{page.name}: there is no '{name}'"


@pytest.mark.parametrize("page", PAGES, ids=_relative)
def test_commands_in_the_text_use_options_that_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    quoted = re.findall(r"`(deepcontext [^`\n]+)`", text)
    shown = re.findall(r"^(?:\$ | {2,})(?:.*?/)?(deepcontext [a-z].*)$", text, re.MULTILINE)
    for command in [*quoted, *shown]:
        _check_words(command, page)


def _check_words(text: str, page: Path) -> None:
    words = re.sub(r"[.,;:]$", "", text.partition("  ")[0]).split()[1:]
    if words[0] == "COMMAND" or words[0].startswith(("-", "[")):
        return
    assert words[0] in OPTIONS, f"{page.name}: unknown command in '{text}'"
    if words[0] == "profile":
        words[1:] = profile.make_parser().split_program(words[1:])[0]
    for word in words[1:]:
        if word in {"-m", "-c", "--", "|"} or word.endswith(".py"):
            return  # what follows belongs to the program, or to the next one
        if not word.startswith("-") or word == "-":
            continue
        option = word.partition("=")[0]
        assert option in OPTIONS[words[0]], f"{page.name}: '{option}' is no option in '{text}'"


def test_every_option_is_in_the_reference() -> None:
    reference = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    for command in COMMANDS:
        section = reference.partition(f"## deepcontext {command.name}\n")[2].partition("\n## ")[0]
        for name in OPTIONS[command.name]:
            assert f"`{name}" in section, f"{command.name} {name}"
    for action in build_parser().actions:
        for name in action.option_strings:
            assert f"`{name}" in reference.partition("\n## ")[0], name


def test_every_command_and_option_explains_itself() -> None:
    for command in COMMANDS:
        assert command.summary
        for action in command.parser().actions:
            assert action.help not in {None, argparse.SUPPRESS}, f"{command.name} {action.dest}"


def test_every_top_folder_says_what_lives_in_it() -> None:
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout.splitlines()
    folders = {path.partition("/")[0] for path in tracked if "/" in path and path[0] != "."}
    missing = [folder for folder in sorted(folders) if not (ROOT / folder / "README.md").exists()]
    assert missing == []


def test_no_placeholder_is_left() -> None:
    for page in PAGES:
        assert "@@" not in page.read_text(encoding="utf-8"), page
