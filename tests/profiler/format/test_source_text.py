"""The section with source text: any texts return, any bytes are refused, limits hold."""

from __future__ import annotations

import contextlib
import json
import linecache
import zlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format import source_text
from deepcontext.profiler.format.source_text import FileText

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = st.dictionaries(
    st.text(max_size=8),
    st.builds(
        FileText,
        st.integers(0, 50),
        st.dictionaries(st.integers(1, 50), st.text(max_size=8), max_size=8),
    ),
    max_size=4,
)


@given(TEXTS)
def test_texts_return(files: dict[str, FileText]) -> None:
    payload = source_text.encode(files)
    assert source_text.decode(payload) == files
    shuffled = dict(reversed(files.items()))
    assert source_text.encode(shuffled) == payload


@given(st.binary(max_size=60), TEXTS, st.data())
def test_any_bytes_are_texts_or_an_error(
    other: bytes, files: dict[str, FileText], data: st.DataObject
) -> None:
    payload = bytearray(source_text.encode(files))
    payload[data.draw(st.integers(0, len(payload) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    for damaged in (other, bytes(payload)):
        with contextlib.suppress(ProfileDataError):
            source_text.decode(damaged)


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        {},
        {"version": 1},
        {"version": 1, "files": []},
        {"version": 1, "files": {"a": 1}},
        {"version": 1, "files": {"a": {"length": 1, "parts": [[1]]}}},
        {"version": "x"},
    ],
)
def test_other_content_is_an_error(content: object) -> None:
    with pytest.raises(ProfileDataError, match="source_text"):
        source_text.decode(zlib.compress(json.dumps(content).encode()))


def test_a_bomb_is_an_error() -> None:
    with pytest.raises(ProfileDataError, match="does not end"):
        source_text.decode(zlib.compress(b" " * (64 << 20)))


def test_a_newer_version_is_no_text() -> None:
    later = json.dumps({"version": 2, "files": 7}).encode()
    assert source_text.decode(zlib.compress(later)) == {}


@given(TEXTS, TEXTS, TEXTS)
def test_joining_is_associative_and_commutative(
    a: dict[str, FileText], b: dict[str, FileText], c: dict[str, FileText]
) -> None:
    x, y, z = map(source_text.encode, (a, b, c))
    joined = source_text.joined
    assert joined([joined([x, y]), z]) == joined([x, joined([z, y])]) == joined([z, x, y])
    names = source_text.decode(joined([x, y, z])).keys()
    assert names == a.keys() | b.keys() | c.keys()


def test_the_same_text_is_stored_once() -> None:
    lines = {line: f"x = {line * 7919}" for line in range(1, 200)}
    one = source_text.encode({"/a/train.py": FileText(300, lines)})
    assert source_text.joined([one, one, one]) == one


def test_lines_around_are_kept_within_the_file() -> None:
    lines = [f"line {number}" for number in range(1, 31)]
    text = source_text.around(lines, [1, 15, 99])
    assert sorted(text.lines) == [1, 2, 3, 4, 5, *range(11, 20)]
    assert text.lines[15] == "line 15"
    assert text.length == 30


def test_a_long_line_is_cut() -> None:
    text = source_text.around(["x" * 10_000], [1])
    assert text.lines == {1: "x" * source_text.LONGEST_LINE}


def test_of_too_many_lines_those_of_the_tree_are_kept() -> None:
    lines = [f"{number}" for number in range(1, 10_001)]
    wanted = range(1, 10_001, 9)
    assert sorted(source_text.around(lines, wanted).lines) == list(wanted)
    most = source_text.around(lines, range(1, 10_001)).lines
    assert sorted(most) == list(range(1, source_text.MOST_LINES + 1))


def test_files_past_the_limit_of_bytes_are_left_out() -> None:
    half = FileText(2, {1: "ä" * (source_text.MOST_BYTES // 4)})  # two bytes each
    assert source_text.bounded({"c": half, "a": half, "b": half}).keys() == {"a", "b"}


@pytest.mark.parametrize(
    "content",
    [
        b"a = 1\nb = 2\n",
        b"a\r\nb\rc",
        b"a\x0cb\nc\n\n",
        "a = '\u2028'\nb\n".encode(),
        b"\xef\xbb\xbfa = 1\n",
        "# -*- coding: latin-1 -*-\na = 'ü'\n".encode("latin-1"),
        "#!/bin/sh\n# vim: set fileencoding=utf-8 :\na = 'ü'\n".encode(),
        b"",
    ],
)
def test_lines_are_those_of_python(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.py"
    file.write_bytes(content)
    text = source_text.decoded(content)
    assert text is not None
    expected = [line.rstrip("\n") for line in linecache.getlines(str(file))]
    assert source_text.split_lines(text) == expected


def test_bytes_that_are_no_text_and_unknown_encodings() -> None:
    assert source_text.decoded(b"a\0b") is None
    assert source_text.decoded(b"a = '\xff'") == "a = '\ufffd'"
    assert source_text.decoded(b"# coding: no-such-codec\na") == "# coding: no-such-codec\na"
    assert source_text.decoded(b"# coding: \xff\xfe\na") is not None
