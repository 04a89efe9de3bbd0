"""The text of source lines: of the profile, or of the file on this machine."""

from __future__ import annotations

import dataclasses
import linecache
import os
from typing import TYPE_CHECKING

import pytest

from deepcontext.profiler.format import source_text
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.source_text import FileText
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.profiler.model.source import (
    CHANGED,
    known_text,
    line_text,
    line_text_of_any,
    lines_around,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

    Make = Callable[..., Profile]

LINES = ["import torch", "", "def f():", "    return 1", "", "f()"]


@pytest.fixture
def made(make_profile: MakeProfile) -> Make:
    """Return a function that makes a profile that holds text: by file its lines by number."""

    def make(held: dict[str, dict[int, str]] | None = None, started_ns: int = 0) -> Profile:
        profile = make_profile(
            [0], [Frame(FrameKind.ROOT, "")], run=RunInfo(start_unix_ns=started_ns)
        )
        files = {name: FileText(len(LINES), lines) for name, lines in (held or {}).items()}
        return profile.with_section(source_text.SECTION, source_text.encode(files))

    return make


def write(folder: Path, text: str) -> str:
    file = folder / "train.py"
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_text_of_a_line(tmp_path: Path, made: Make) -> None:
    file, profile = write(tmp_path, "def f():\n    return 1\n"), made()
    assert line_text(profile, file, 2) == "return 1"
    assert line_text(profile, file, 99) == ""
    assert line_text(profile, str(tmp_path / "gone.py"), 1) == ""
    assert line_text(profile, "bad\x00name", 1) == ""
    assert line_text(profile, "<string>", 1) == ""


def test_text_follows_changes_of_the_file(tmp_path: Path, made: Make) -> None:
    file, profile = write(tmp_path, "a = 1\n"), made()
    assert line_text(profile, file, 1) == "a = 1"
    write(tmp_path, "another = 2\n")
    assert line_text(profile, file, 1) == "another = 2"


def test_no_text_from_a_file_that_was_changed_after_the_run(tmp_path: Path, made: Make) -> None:
    file = write(tmp_path, "a = 1\n")
    os.utime(file, ns=(2_000, 2_000))
    assert line_text(made(started_ns=2_000), file, 1) == "a = 1"
    changed = made(started_ns=1_999)
    assert line_text(changed, file, 1) == ""
    assert lines_around(changed, file, 1, 3) == ""
    assert known_text(changed, file).lines == {1: "a = 1"}
    assert known_text(changed, file).note == CHANGED


def test_a_part_of_the_run_counts_from_the_start_of_the_run(tmp_path: Path, made: Make) -> None:
    file = write(tmp_path, "a = 1\n")
    os.utime(file, ns=(2_000, 2_000))
    whole = made(started_ns=1_000)
    later = RunInfo(start_unix_ns=3_000)
    assert line_text(dataclasses.replace(whole, run=later, whole=whole), file, 1) == ""


def test_binary_file_has_no_text(tmp_path: Path, made: Make) -> None:
    file = tmp_path / "train.py"
    file.write_bytes(b"\xff\xfe\x00\x81")
    assert line_text(made(), str(file), 1) == ""


def test_a_pipe_is_not_opened(tmp_path: Path, made: Make) -> None:
    pipe = tmp_path / "pipe.py"
    os.mkfifo(pipe)
    assert line_text(made(), str(pipe), 1) == ""  # opening it would wait for a writer
    assert known_text(made(), str(pipe)).note == "the file is not source text"


def test_a_notebook_cell_has_its_text_in_its_own_process(
    monkeypatch: pytest.MonkeyPatch, made: Make
) -> None:
    """The cell is as ipykernel leaves it; the file of its name never existed."""
    name = "/tmp/ipykernel_1/4278877317.py"
    lines = ["def step():\n", "    return 1\n"]
    monkeypatch.setitem(linecache.cache, name, (23, None, lines, name))
    assert line_text(made(), name, 2) == "return 1"


def test_a_missing_file_has_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Make
) -> None:
    name = str(tmp_path / "gone.py")
    monkeypatch.setitem(linecache.cache, name, (3, 1.0, ["pass\n"], name))
    assert line_text(made(), name, 1) == ""


def test_text_of_a_deleted_file_comes_from_the_profile(made: Make) -> None:
    profile = made({"/gone/train.py": {3: LINES[2], 4: LINES[3]}})
    assert line_text(profile, "/gone/train.py", 4) == "return 1"
    assert line_text(profile, "/gone/train.py", 6) == ""
    around = "    3 def f():\n    4     return 1"
    assert lines_around(profile, "/gone/train.py", 4, 2) == around
    known = known_text(profile, "/gone/train.py")
    assert (known.lines, known.length) == ({3: LINES[2], 4: LINES[3]}, len(LINES))
    assert "No such file" in known.note


def test_a_file_that_agrees_with_the_profile_is_shown_whole(tmp_path: Path, made: Make) -> None:
    file = write(tmp_path, "\n".join(LINES))
    profile = made({file: {4: LINES[3]}})
    assert known_text(profile, file).lines == dict(enumerate(LINES, 1))
    assert known_text(profile, file).note == ""
    assert line_text(profile, file, 6) == "f()"


@pytest.mark.parametrize(
    "text", ["\n".join([*LINES, ""]) + "\n", "\n".join([*LINES[:3], "    return 2", *LINES[4:]])]
)
def test_another_file_of_the_same_name_is_not_believed(
    tmp_path: Path, made: Make, text: str
) -> None:
    file = write(tmp_path, text)
    profile = made({file: {4: LINES[3]}})
    assert line_text(profile, file, 4) == "return 1"
    assert line_text(profile, file, 6) == ""
    known = known_text(profile, file)
    assert known.lines == {4: LINES[3]}
    assert "other text" in known.note


def test_a_changed_file_has_its_text_from_the_profile(tmp_path: Path, made: Make) -> None:
    file = write(tmp_path, "\n".join(["# new", *LINES]))
    profile = made({file: {4: LINES[3]}}, started_ns=1_000)
    assert line_text(profile, file, 4) == "return 1"
    assert CHANGED in known_text(profile, file).note


def test_a_line_of_a_job_has_text_from_any_of_its_processes(made: Make) -> None:
    first, second = made(), made({"/gone/data.py": {4: LINES[3]}})
    assert line_text_of_any([first, second], "/gone/data.py", 4) == "return 1"
    assert line_text_of_any([first], "/gone/data.py", 4) == ""
