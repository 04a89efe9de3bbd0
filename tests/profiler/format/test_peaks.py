"""Peaks are kept for each machine and number of threads, and no file of another kind is replaced."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import pytest

from deepcontext.errors import UserError
from deepcontext.profiler.format import peaks
from deepcontext.profiler.format.peaks import DevicePeaks

if TYPE_CHECKING:
    from pathlib import Path

ONE = DevicePeaks("A CPU", 8, 1, {"f32": 1e11, "bf16": 2e10}, 1e10, {"f32": 0.1, "copy": 0.0})
ALL = dataclasses.replace(ONE, threads=8, bytes_per_second=4e10)
OTHER = dataclasses.replace(ONE, device="Another CPU")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "deepcontext" / "peaks.json"


def test_peaks_are_kept_by_machine_and_threads(cache: Path) -> None:
    assert peaks.measured() == ()
    assert peaks.keep([ONE, ALL]) == cache
    peaks.keep([OTHER])
    assert peaks.measured() == (ONE, ALL, OTHER)
    faster = dataclasses.replace(ONE, bytes_per_second=2e10)
    peaks.keep([faster])
    assert peaks.measured() == (ALL, OTHER, faster)
    assert [file.name for file in cache.parent.iterdir()] == ["peaks.json"]


def test_a_cache_folder_must_be_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert peaks.cache_file() == tmp_path / ".cache" / "deepcontext" / "peaks.json"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": "deepcontext peaks"}'])
def test_a_damaged_cache_holds_nothing(cache: Path, content: str) -> None:
    cache.parent.mkdir()
    cache.write_text(content)
    assert peaks.measured() == ()


def test_a_file_of_another_kind_is_not_replaced(cache: Path) -> None:
    cache.parent.mkdir()
    cache.write_text("mine")
    with pytest.raises(UserError):
        peaks.keep([ONE])
    assert cache.read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_told(cache: Path) -> None:
    cache.parent.write_text("a file")
    with pytest.raises(UserError, match="set XDG_CACHE_HOME"):
        peaks.keep([ONE])


def test_a_file_written_by_hand_may_leave_out_what_is_not_known(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    row = {"device": "NVIDIA X", "flops_per_second": {"bf16": 1e15}, "bytes_per_second": 3e12}
    file.write_text(json.dumps({"format": "deepcontext peaks", "version": 1, "devices": [row]}))
    assert peaks.read_file(str(file)) == (DevicePeaks("NVIDIA X", 0, 0, {"bf16": 1e15}, 3e12),)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("{}", "expected an object with"),
        ('{"format": "deepcontext peaks", "version": 2}', "version 2, this build reads 1"),
        ('{"format": "deepcontext peaks", "version": 1, "devices": [{}]}', "other keys"),
        ("nothing", "cannot read"),
    ],
)
def test_a_file_that_is_none_of_peaks_says_why(tmp_path: Path, content: str, expected: str) -> None:
    file = tmp_path / "mine.json"
    file.write_text(content)
    with pytest.raises(UserError, match=expected):
        peaks.read_file(str(file))


def test_a_section_survives_and_a_damaged_one_is_empty() -> None:
    payload = peaks.encode_section([ONE], 8)
    assert peaks.decode_section(payload) == ((ONE,), 8)
    for damaged in (b"", b"{}", b'{"threads": "x", "devices": []}'):
        assert peaks.decode_section(damaged) == ((), 0)
