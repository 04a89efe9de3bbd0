"""The source text that a session keeps: of which files, until when, and what it never opens."""

from __future__ import annotations

import array
import linecache
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import deepcontext
from deepcontext.profiler.format import source_text
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.own_os import os as own_os
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.source import held_text
from deepcontext.profiler.recording import source_text as recorded
from deepcontext.profiler.recording.source_text import SourceText, Texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepcontext._native import FrameColumns

LIBRARY = "/usr/lib/python3.11/site-packages/torch/nn/x.py"


def frames(*rows: tuple[str, str, int], kind: FrameKind = FrameKind.PYTHON) -> FrameColumns:
    """Return frames by name, file and line."""
    strings = list(dict.fromkeys(text for name, file, _ in rows for text in (name, file)))

    def column(values: list[int]) -> bytes:
        return array.array("I", values).tobytes()

    return {
        "strings": strings,
        "kind": bytes([kind] * len(rows)),
        "name": column([strings.index(name) for name, _, _ in rows]),
        "file": column([strings.index(file) for _, file, _ in rows]),
        "line": column([line for _, _, line in rows]),
    }


def texts(found: Texts) -> Mapping[str, Mapping[int, str]]:
    if not found.sections:
        return {}
    decoded = source_text.decode(found.sections[source_text.SECTION])
    return {name: text.lines for name, text in decoded.items()}


@pytest.fixture
def train(tmp_path: Path) -> str:
    file = tmp_path / "train.py"
    file.write_text("".join(f"line {number}\n" for number in range(1, 101)), encoding="utf-8")
    return str(file)


def test_only_lines_of_the_user_that_occur(train: str, tmp_path: Path) -> None:
    found = SourceText(str(tmp_path)).of(
        frames(("f", train, 50), ("g", LIBRARY, 3), ("h", "train.py", 7), ("i", train, 0))
    )
    assert sorted(texts(found)[train]) == list(range(46, 55))
    assert texts(found)["train.py"][7] == "line 7"  # below the working directory
    assert len(texts(found)) == 2
    assert found.notes == ()


@pytest.mark.parametrize("kind", [FrameKind.NATIVE, FrameKind.RANK])
def test_frames_without_a_source_line_have_no_text(train: str, kind: FrameKind) -> None:
    assert texts(SourceText("").of(frames(("f", train, 50), kind=kind))) == {}


def test_a_file_that_is_changed_while_the_program_runs_keeps_its_first_text(train: str) -> None:
    source = SourceText("")
    assert texts(source.of(frames(("f", train, 5))))[train][5] == "line 5"
    Path(train).write_text("changed\n" * 100, encoding="utf-8")
    assert texts(source.of(frames(("f", train, 5), ("f", train, 50))))[train][50] == "line 50"
    Path(train).unlink()
    assert texts(source.of(frames(("f", train, 60))))[train][60] == "line 60"


def test_a_file_that_was_changed_before_it_was_read_has_no_text(train: str) -> None:
    source = SourceText("")
    later = source._not_after_ns + 10**9
    os.utime(train, ns=(later, later))
    found = source.of(frames(("f", train, 5)))
    assert texts(found) == {}
    assert found.notes == ("no source text of train.py: it was changed after the program started",)


def test_a_forked_child_has_the_start_of_its_parent(train: str) -> None:
    os.utime(train)  # after this module was loaded
    pid = os.fork()
    if not pid:
        os._exit(len(texts(SourceText("").of(frames(("f", train, 5))))))
    assert os.waitpid(pid, 0)[1] == 0


def test_only_regular_files_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe, folder, link = tmp_path / "pipe.py", tmp_path / "folder.py", tmp_path / "link.py"
    os.mkfifo(pipe)
    folder.mkdir()
    link.symlink_to("/dev/zero")
    opened: list[Any] = []
    monkeypatch.setattr(own_os, "open", lambda *given: opened.append(given))
    names = [*map(str, (pipe, folder, link, tmp_path / "gone.py")), "bad\0name", "a" * 9_999]
    found = SourceText("").of(frames(*(("f", name, 1) for name in names)))
    assert (texts(found), found.notes, opened) == ({}, (), [])


def test_files_that_are_no_source_have_no_text(tmp_path: Path) -> None:
    binary, huge, secret = (tmp_path / name for name in ("binary.py", "huge.py", "secret.py"))
    binary.write_bytes(b"\x7fELF\0\0")
    huge.write_bytes(b"x\n" * source_text.MOST_FILE_BYTES)
    secret.write_text("a\n", encoding="utf-8")
    secret.chmod(0)
    rows = [("f", str(each), 1) for each in (binary, huge, secret)]
    found = SourceText("").of(frames(*rows))
    assert texts(found).keys() <= {str(secret)}  # root reads every file
    assert found.notes == ("no source text of huge.py: it has more than 2 MiB",)


def test_other_bytes_give_replacement_characters(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_bytes(b"a = '\xff\xfe'\nb\n")
    assert texts(SourceText("").of(frames(("f", str(file), 1))))[str(file)] == {
        1: "a = '\ufffd\ufffd'",
        2: "b",
    }


def test_a_fault_costs_the_text_of_one_file(train: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise RuntimeError("an audit hook of the program")

    monkeypatch.setattr(own_os, "open", refuse)
    found = SourceText("").of(frames(("f", train, 5)))
    assert texts(found) == {}
    assert "an audit hook of the program" in found.notes[0]


def test_past_the_limit_of_the_profile_files_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = []
    for name in "abcd":
        file = tmp_path / f"{name}.py"
        file.write_text("x" * 390 + "\n", encoding="utf-8")
        rows.append(("f", str(file), 1))
    monkeypatch.setattr(source_text, "MOST_BYTES", 800)
    found = SourceText("").of(frames(*rows))
    assert [Path(name).name for name in texts(found)] == ["a.py", "b.py"]
    assert found.notes == (
        "the source text of 2 files is not in the profile, which holds up to 1 MiB of text",
    )


def test_past_the_limit_of_a_file_its_last_lines_are_left_out(
    train: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_text, "MOST_LINES", 1)
    found = SourceText("").of(frames(("f", train, 2), ("g", train, 5)))
    assert [list(lines) for lines in texts(found).values()] == [[2]]
    assert found.notes == ("files whose source text ends after 2,000 lines: 1",)


def test_past_the_limit_of_memory_files_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = []
    for name in "abcd":
        (tmp_path / f"{name}.py").write_text("x" * 390 + "\n", encoding="utf-8")
        rows.append(("f", str(tmp_path / f"{name}.py"), 1))
    monkeypatch.setattr(recorded, "_MOST_KEPT_BYTES", 800)
    found = SourceText("").of(frames(*rows))
    assert len(texts(found)) == 2
    assert "and 1 more" in found.notes[0]


def test_a_cell_of_a_notebook_has_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cell is as ipykernel leaves it; the file of its name never existed."""
    name, deleted = "/tmp/ipykernel_1/4278877317.py", "/gone/x.py"
    cell = ["def step():\n", "    return 1\n"]
    monkeypatch.setitem(linecache.cache, name, (23, None, cell, name))
    monkeypatch.setitem(linecache.cache, deleted, (3, 1.0, ["pass\n"], deleted))
    monkeypatch.setitem(linecache.cache, "/gone/lazy.py", (lambda: "x",))
    rows = [("step", name, 2), ("f", deleted, 1), ("f", "/gone/lazy.py", 1)]
    source = SourceText("")
    assert texts(source.of(frames(*rows))) == {name: {1: "def step():", 2: "    return 1"}}
    later = ["def step():\n", "    return 2\n"]  # the next cell
    monkeypatch.setitem(linecache.cache, "<ipython-input-2-a>", (23, None, later, "x"))
    found = source.of(frames(*rows, ("step", "<ipython-input-2-a>", 2)))
    assert texts(found)["<ipython-input-2-a>"][2] == "    return 2"


COMMAND = "def work():\n    return 1\n\nwork()\n"


def test_the_code_of_a_command_has_text_where_it_is_surely_its() -> None:
    source = SourceText("", COMMAND)
    rows = [("work", "<string>", 2), ("<module>", "<string>", 4)]
    assert texts(source.of(frames(*rows)))["<string>"][4] == "work()"
    foreign = frames(*rows, ("Config.__init__", "<string>", 30), kind=FrameKind.PYTHON)
    assert len(texts(source.of(foreign))["<string>"]) == 4
    only = frames(("Config.__init__", "<string>", 2))
    assert texts(source.of(only)) == {}
    assert texts(SourceText("", "exec(open('x').read())").of(frames(*rows))) == {}
    assert texts(SourceText("").of(frames(*rows))) == {}


PROGRAM = """\
    import sys, time

    def work(seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            sum(range(1000))

    work(0.4)
"""


def profiled(folder: Path, *words: str) -> Profile:
    command = [sys.executable, "-m", "deepcontext", "profile", "-q", "-o", "out.dcprof", *words]
    subprocess.run(command, cwd=folder, check=True, timeout=120)
    return Profile.load(folder / "out.dcprof")


def test_a_profile_shows_the_text_of_a_program_that_deleted_itself(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    code = textwrap.dedent(PROGRAM) + "import os; os.unlink(__file__)\n"
    program.write_text(code, encoding="utf-8")
    text = held_text(profiled(tmp_path, "program.py"))[str(program)]
    assert text.lines[8] == "work(0.4)"
    assert not program.exists()


def test_a_profile_of_a_command_has_its_text(tmp_path: Path) -> None:
    profile = profiled(tmp_path, "-c", textwrap.dedent(PROGRAM))
    assert held_text(profile)["<string>"].lines[8] == "work(0.4)"


def test_a_profile_without_source_text(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM), encoding="utf-8")
    profile = profiled(tmp_path, "--no-source-text", "program.py")
    assert source_text.SECTION not in profile.sections


@pytest.mark.parametrize("is_kept", [True, False])
def test_the_option_of_a_session(is_kept: bool) -> None:  # noqa: FBT001  a parameter of the test
    part = deepcontext.profile(source_text=is_kept)
    with part, deepcontext.scope("work"):
        pass
    assert part.result is not None
    assert (source_text.SECTION in part.result.sections) is is_kept
    if is_kept:
        lines = held_text(part.result)[__file__].lines
        assert any("deepcontext.scope" in line for line in lines.values())


def test_a_snapshot_of_a_program_that_is_killed_has_text(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    code = textwrap.dedent(PROGRAM).replace("work(0.4)", "work(1.5)")
    program.write_text(code + "import os; os.kill(os.getpid(), 9)\n", encoding="utf-8")
    command = [sys.executable, "-m", "deepcontext", "profile", "-q", "-o", "out.dcprof"]
    subprocess.run([*command, "program.py"], cwd=tmp_path, check=False, timeout=120)
    profile = Profile.load(tmp_path / "out.dcprof")
    assert profile.run.exit_reason == "snapshot"
    assert held_text(profile)[str(program)].lines[8] == "work(1.5)"
