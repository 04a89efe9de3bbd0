"""The outer message: foreign, truncated, damaged and newer files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format import schema, wire
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.store.framing import open_body

if TYPE_CHECKING:
    from collections.abc import Callable


def refusal(content: bytes) -> str:
    with pytest.raises(ProfileDataError) as caught:
        open_body(content, "run.dcprof")
    text = str(caught.value)
    assert text.startswith("cannot read 'run.dcprof': ")
    return text


def test_an_empty_file_is_refused() -> None:
    assert "the file is empty" in refusal(b"")


@pytest.mark.parametrize("content", [b"{}", b"\x7fELF\x02\x01\x01", b"PK\x03\x04" * 100, b"\x0a"])
def test_the_error_for_a_foreign_file_does_not_quote_it(content: bytes) -> None:
    text = refusal(content)
    if content == b"\x0a":  # could be the beginning of a profile
        assert "at offset 1 of 1 bytes: the file ends inside the header" in text
    else:
        assert "not a profile; name a file written by 'deepcontext profile' or" in text
        assert "\\x" not in text


def test_a_script_is_refused_with_the_command_that_profiles_it() -> None:
    with pytest.raises(ProfileDataError) as caught:
        open_body(b"print('hello')\n", "my script.py")
    assert str(caught.value) == (
        "cannot read 'my script.py': not a profile; to profile a script: deepcontext profile "
        "'my script.py'"
    )


def test_a_newer_major_version_is_refused_whatever_its_body_holds(
    file_with: Callable[..., bytes],
) -> None:
    text = refusal(file_with(b"no body of ours", major=2, minor=7, body_crc32=1))
    assert "format version 2.7, this build reads up to 1.x; upgrade deepcontext" in text


def test_major_version_zero_is_refused_as_damage(file_with: Callable[..., bytes]) -> None:
    assert "field 'major' or 'minor'" in refusal(file_with(b"", major=0))


def test_a_newer_minor_version_is_accepted(
    file_with: Callable[..., bytes], small_file: bytes, body_of: Callable[[bytes], Any]
) -> None:
    content = file_with(body_of(small_file), minor=9)
    assert open_body(content, "run.dcprof").is_newer
    assert not open_body(small_file, "run.dcprof").is_newer
    assert len(Profile.from_bytes(content).tree) == 12


def test_unknown_fields_of_every_wire_type_are_skipped(small_file: bytes) -> None:
    unknown = b"\x30\x96\x01" + b"\x39" + bytes(8) + b"\x42\x03abc" + b"\x4d" + bytes(4)
    assert open_body(small_file + unknown, "run.dcprof") == open_body(small_file, "run.dcprof")


@pytest.mark.parametrize(
    ("tail", "message"),
    [
        (b"\x33", "unknown wire type 3"),
        (b"\x42\x05abc", "declares 5 bytes, 3 are left"),
        (b"\x42\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "declares 9223372036854775807 bytes"),
        (b"\x39abc", "declares 8 bytes, 3 are left"),
        (b"\x30" + b"\xff" * 11, "a number does not end"),
        (b"\x80", "a number does not end"),
    ],
)
def test_damage_is_named_with_its_offset(small_file: bytes, tail: bytes, message: str) -> None:
    text = refusal(small_file + tail)
    assert message in text
    offset = int(text.partition("at offset ")[2].split()[0])
    assert len(small_file) <= offset <= len(small_file) + 1


def test_a_body_with_a_wrong_checksum_is_refused(file_with: Callable[..., bytes]) -> None:
    text = refusal(file_with(b"", body_crc32=7))
    assert "the checksum of field 'body' is 0x00000000, the file declares 0x00000007" in text


def test_a_file_without_a_body_is_refused() -> None:
    content = wire.encode("ProfileFile", {"format": schema.FORMAT, "major": schema.MAJOR})
    assert "field 'body' is missing" in refusal(content)
