"""Which source text a one-file page holds."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.ui.web import source_choice
from deepcontext.ui.web.source_choice import IN_PART, LEFT_OUT, OTHERS, chosen_texts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.ui.web.answers import SourceText

    Write = Callable[..., str]

LINES = 100


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes a file of lines that do not compress."""
    numbers = random.Random(1)

    def write(name: str, length: int = LINES) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = (f"{name} {line} {numbers.getrandbits(256):x}" for line in range(1, 1 + length))
        path.write_text("\n".join(lines), encoding="utf-8")
        return str(path)

    return write


def program(
    make_profile: Any, user: str, library: str, ns: dict[int, int], *, line: int = 50
) -> Profile:
    """Return the profile of a program that imports a library and calls it.

    Nodes: 2 the program, 3 the import (its time is node 4), 5 a line of the library, 6 its line 90.
    """
    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.THREAD, "MainThread"),
        Frame(FrameKind.PYTHON, "<module>", user, 3),
        Frame(FrameKind.PYTHON, "<module>", library, 10),
        Frame(FrameKind.OPERATOR, "aten::zeros"),
        Frame(FrameKind.PYTHON, "call", library, line),
        Frame(FrameKind.PYTHON, "check", library, 90),
    ]
    profile: Profile = make_profile([0, 0, 1, 2, 3, 2, 2], frames, host_time_ns=ns)
    return profile


def shown(text: SourceText) -> list[int]:
    return [part.first + at for part in text.parts for at in range(len(part.lines))]


def test_libraries_have_text_only_around_lines_that_cost(make_profile: Any, write: Write) -> None:
    user, library = write("train.py"), write("site-packages/library.py")
    profile = program(make_profile, user, library, {4: 10**9, 5: 10**6, 6: 10})
    texts = chosen_texts(profile, with_text=True)
    assert shown(texts[library]) == list(range(42, 59))
    assert texts[library].length == LINES
    assert IN_PART in texts[library].note
    assert shown(texts[user]) == list(range(1, 1 + LINES))
    assert IN_PART not in texts[user].note


def test_a_library_that_is_only_imported_has_no_text(make_profile: Any, write: Write) -> None:
    user, library = write("train.py"), write("site-packages/library.py")
    texts = chosen_texts(program(make_profile, user, library, {4: 10**9}), with_text=True)
    assert set(texts) == {OTHERS, user}
    assert texts[OTHERS].note == LEFT_OUT


def test_a_short_library_is_whole(make_profile: Any, write: Write) -> None:
    user, library = write("train.py"), write("site-packages/library.py", 10)
    profile = program(make_profile, user, library, {5: 10**6}, line=5)
    texts = chosen_texts(profile, with_text=True)
    assert shown(texts[library]) == list(range(1, 11))
    assert IN_PART not in texts[library].note


def test_user_files_are_cut_when_they_are_large_compared_with_the_profile(
    make_profile: Any, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_choice, "_LEAST_USER_BYTES", 5_000)
    costly, cheap = write("costly.py", 1_000), write("cheap.py")
    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.PYTHON, "work", costly, 500),
        Frame(FrameKind.OPERATOR, "aten::mm"),
        Frame(FrameKind.PYTHON, "work", cheap, 50),
        Frame(FrameKind.OPERATOR, "aten::add"),
    ]
    profile = make_profile([0, 0, 1, 0, 3], frames, host_time_ns={2: 10**9, 4: 10**7})
    texts = chosen_texts(profile, with_text=True)
    assert shown(texts[costly]) == list(range(470, 531))
    assert IN_PART in texts[costly].note
    assert cheap not in texts  # the costly file took the room
