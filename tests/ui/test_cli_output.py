"""Commands that write a file: which files they replace, which they keep, and `-`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deepcontext.profiler.model.profile import Profile
from deepcontext.ui.cli import app
from deepcontext.ui.export import FORMATS

SCRIPT = "print('hello')\n"
# These need steps that were kept whole, and write as the others do: tests/ui/test_export_time_lines.py.
OF_STEPS = {"perfetto", "chrome-trace"}
EXPORTS = [
    ["export", "train.dcprof", "--format", name, "-o"] for name in FORMATS if name not in OF_STEPS
]
PAGE = ["view", "train.dcprof", "--html"]
WRITERS = [*EXPORTS, PAGE]
SUFFIX = {
    "pprof": ".pb.gz",
    "speedscope": ".json",
    "collapsed": ".folded",
    "parquet": ".parquet",
    "view": ".html",
}


@pytest.fixture(autouse=True)
def in_folder(training_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(training_folder)
    return training_folder


def target(words: list[str]) -> str:
    return f"out{SUFFIX['view' if words is PAGE else words[3]]}"


def case(words: list[str]) -> str:
    return "view" if words is PAGE else words[3]


@pytest.mark.parametrize("words", WRITERS, ids=case)
def test_a_file_of_the_user_is_kept_unless_forced(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path("hello.py")
    path.write_text(SCRIPT, encoding="utf-8")
    assert app.main([*words, "hello.py"]) == 2
    error = capsys.readouterr().err
    assert "error: cannot write 'hello.py': the file exists and is not a" in error
    assert "--force" in error
    assert path.read_text(encoding="utf-8") == SCRIPT
    assert app.main([*words, "hello.py", "--force"]) == 0
    assert path.read_text(encoding="utf-8", errors="replace") != SCRIPT
    assert not list(Path().glob(".*"))


@pytest.mark.parametrize("words", WRITERS, ids=case)
def test_a_command_replaces_its_own_output(words: list[str]) -> None:
    path = Path(target(words))
    assert app.main([*words, str(path)]) == 0
    first = path.stat()
    assert app.main([*words, str(path)]) == 0
    assert path.stat().st_ino != first.st_ino


@pytest.mark.parametrize("words", WRITERS, ids=case)
def test_a_command_does_not_replace_the_output_of_another(words: list[str]) -> None:
    for other in WRITERS:
        if other is not words:
            path = Path(target(words))
            path.unlink(missing_ok=True)
            assert app.main([*other, str(path)]) == 0
            before = path.read_bytes()
            assert app.main([*words, str(path)]) == 2
            assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("out.folded", "notes 1\nof mine\n"),
        ("out.folded", "\n\n"),
        ("out.folded", "a;b 12"),
        ("out.txt", "a;b 12\n"),
    ],
)
def test_a_file_that_only_looks_like_stacks_is_not_replaced(name: str, content: str) -> None:
    Path(name).write_text(content, encoding="utf-8")
    words = ["export", "train.dcprof", "--format", "collapsed", "-o"]
    assert app.main([*words, name]) == 2
    assert Path(name).read_text(encoding="utf-8") == content


@pytest.mark.parametrize("words", WRITERS, ids=case)
def test_the_profile_that_is_read_is_never_written_to(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = Path("train.dcprof").read_bytes()
    Path("link").symlink_to("train.dcprof")
    for name in ("train.dcprof", "./train.dcprof", "link"):
        assert app.main([*words, name, "--force"]) == 2
        assert "the file is an input of this command" in capsys.readouterr().err
    assert Path("train.dcprof").read_bytes() == before


@pytest.mark.parametrize("words", [*WRITERS, ["merge", "train.dcprof", "empty.dcprof", "-o"]])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x" * 300, "File name too long"),
        ("none/out", "none' does not exist; create it first"),
        (".", "it is a folder; name a file in it"),
        ("train.dcprof/out", "cannot write 'train.dcprof/out': "),
        ("/proc/out", "cannot write '/proc/out': "),
    ],
)
def test_a_path_that_cannot_be_a_file_gives_one_line(
    words: list[str], name: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.main([*words, name]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert message in error
    assert ".tmp" not in error


@pytest.mark.parametrize("name", ["a name", "\u00fcn\u00ef c\u00f6d\u00e9", "new\nline", "-dash"])
def test_any_name_that_the_system_accepts_is_accepted(name: str) -> None:
    assert app.main(["merge", "train.dcprof", "empty.dcprof", f"--output={name}"]) == 0
    assert app.main(["report", "--", name]) == 0


def test_merge_replaces_profiles_only(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["merge", "train.dcprof", "empty.dcprof", "-o"]
    Path("hello.py").write_text(SCRIPT, encoding="utf-8")
    assert app.main([*words, "hello.py"]) == 2
    assert "'hello.py': the file exists and is not a profile" in capsys.readouterr().err
    assert Path("hello.py").read_text(encoding="utf-8") == SCRIPT
    Path("job.dcprof").write_bytes(Path("troubled.dcprof").read_bytes())
    assert app.main([*words, "job.dcprof"]) == 0
    assert Profile.load("job.dcprof").run.ranks == 2


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (EXPORTS[0], "-"),
        (EXPORTS[2], "/dev/stdout"),
        (PAGE, "-"),
        (["merge", "train.dcprof", "empty.dcprof", "-o"], "-"),
    ],
)
def test_standard_output_gets_the_file_and_no_message(words: list[str], name: str) -> None:
    assert app.main([*words, "file"]) == 0
    done = subprocess.run(
        [sys.executable, "-m", "deepcontext", *words, name], capture_output=True, check=True
    )
    assert done.stdout == Path("file").read_bytes()
    assert not Path("-").exists()


@pytest.mark.parametrize("words", WRITERS, ids=case)
def test_a_device_stays_a_device(words: list[str]) -> None:
    before = Path(os.devnull).stat().st_ino
    assert app.main([*words, os.devnull]) == 0
    assert Path(os.devnull).stat().st_ino == before
