"""Numbers and names as text: the same width everywhere, nothing lost silently."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.ui.format import (
    ASCII,
    UNICODE,
    Elide,
    elide,
    format_bytes,
    format_count,
    format_mean_sd,
    format_ns,
    format_share,
    format_value,
    frame_label,
    printable,
    shorten_path,
)


@pytest.mark.parametrize(
    ("duration_ns", "text"),
    [
        (None, "-"),
        (math.nan, "-"),
        (math.inf, "-"),
        (0, "0"),
        (7, "7 ns"),
        (7.25, "7.25 ns"),
        (999, "999 ns"),
        (999.96, "1.00 us"),
        (1_000, "1.00 us"),
        (9_994, "9.99 us"),
        (9_996, "10.0 us"),
        (99_960, "100 us"),
        (999_499, "999 us"),
        (999_500, "1.00 ms"),
        (1_234_567, "1.23 ms"),
        (123_456_789, "123 ms"),
        (999_999_999, "1.00 s"),
        (59_940_000_000, "59.9 s"),
        (999_000_000_000, "999 s"),
        (1_000_000_000_000, "16m 40s"),
        (3_599_400_000_000, "59m 59s"),
        (3_600_000_000_000, "1h 00m"),
        (-1_500_000, "-1.50 ms"),
    ],
)
def test_durations(duration_ns: float | None, text: str) -> None:
    assert format_ns(duration_ns) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (None, "-"),
        (0, "0"),
        (512, "512 B"),
        (1023, "1.00 KiB"),
        (1536, "1.50 KiB"),
        (2**30, "1.00 GiB"),
    ],
)
def test_sizes(size_bytes: int | None, text: str) -> None:
    assert format_bytes(size_bytes) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(None, "-"), (0, "0"), (999_999, "999,999"), (1_234_567, "1.23 M"), (2.5, "2.50")],
)
def test_counts(count: float | None, text: str) -> None:
    assert format_count(count) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (None, "-"),
        (0.0, "0.0 %"),
        (0.0004, "< 0.1 %"),
        (0.0005, "0.1 %"),
        (0.1234, "12.3 %"),
        (0.9994, "99.9 %"),
        (0.9996, "100 %"),
        (1.4, "140 %"),
    ],
)
def test_shares(share: float | None, text: str) -> None:
    assert format_share(share) == text


def test_values_carry_the_unit_of_their_metric() -> None:
    assert format_value(2048, "ns") == "2.05 us"
    assert format_value(2048, "bytes") == "2.00 KiB"
    assert format_value(2048, "count") == "2,048"
    assert format_value(2_000_000, "flop") == "2.00 M"


def test_means_with_deviations() -> None:
    assert format_mean_sd(1_500_000, 150_000) == "1.50 ms ± 10 %"
    assert format_mean_sd(1_500_000, 150_000, ASCII) == "1.50 ms +- 10 %"
    assert format_mean_sd(1_500_000, None) == "1.50 ms"
    assert format_mean_sd(1_500_000, 1_600_000) == "1.50 ms"
    assert format_mean_sd(0, 0.0) == "0"
    assert format_mean_sd(None, None) == "-"


@given(st.integers(-(10**15), 10**15))
def test_durations_and_sizes_fit_their_column(value: int) -> None:
    assert len(format_ns(value).removeprefix("-")) <= 8
    assert len(format_bytes(value).removeprefix("-")) <= 8


@given(st.floats(1e-3, 9e11))
def test_a_duration_is_within_half_a_percent_of_its_text(duration_ns: float) -> None:
    number, unit = format_ns(duration_ns).split()
    scale = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]
    assert float(number) * scale == pytest.approx(duration_ns, rel=0.005, abs=0.005)


NAMES = st.text(st.characters(codec="utf-8"), max_size=40)


@given(NAMES, st.integers(0, 50), st.sampled_from([ASCII, UNICODE]), st.sampled_from(Elide))
def test_shortened_names_fit_and_are_marked(
    name: str, width: int, glyphs: object, where: Elide
) -> None:
    text = printable(name)
    short = elide(text, width, glyphs, where)  # type: ignore[arg-type]
    assert cell_len(short) <= width
    if cell_len(text) <= width:
        assert short == text
    elif width > 5:
        assert glyphs.ellipsis in short  # type: ignore[attr-defined]


def test_names_are_shortened_where_they_are_least_informative() -> None:
    module = "Linear 'encoder.layers.0.linear1'"
    assert elide(module, 20) == "Linear…rs.0.linear1'"
    assert elide("/a/long/path/train.py:10", 14, where=Elide.START) == "…h/train.py:10"
    assert elide("loss = model(inputs)", 10, where=Elide.END) == "loss = mo…"


@pytest.mark.parametrize(
    ("name", "encoding", "text"),
    [
        ("aten::mm", "utf-8", "aten::mm"),
        ("a\x1b[31mb\nc\x00", "utf-8", "a\\x1b[31mb\\nc\\x00"),
        ("größe", "utf-8", "größe"),
        ("größe", "ascii", "gr\\xf6\\xdfe"),
        ("\ud800", "utf-8", "\\ud800"),
        ("a\u202eb", "utf-8", "a\\u202eb"),
    ],
)
def test_names_cannot_control_the_terminal(name: str, encoding: str, text: str) -> None:
    assert printable(name, encoding) == text


def test_paths_are_relative_inside_the_folder_only() -> None:
    assert shorten_path("/home/me/a/b.py", "/home/me") == "a/b.py"
    assert shorten_path("/home/meg/b.py", "/home/me") == "/home/meg/b.py"
    assert shorten_path("/home/me/b.py", "") == "/home/me/b.py"


def test_frames_in_a_few_words() -> None:
    assert frame_label(Frame(FrameKind.PYTHON, "f", "/a/b.py", 3)) == "f b.py:3"
    assert frame_label(Frame(FrameKind.OPERATOR, "aten::mm")) == "aten::mm"
    assert frame_label(Frame(FrameKind.SCOPE, "")) == "(unnamed)"
    assert frame_label(Frame(FrameKind.NATIVE, "ns::f", "/a/libb.so")) == "ns::f libb.so"
