"""Format numbers and names for a terminal or a page.

Only this module adds units to integers of ns and bytes. Does not measure or aggregate. Invariant:
a number keeps three significant digits and its text has at most eight characters, so that columns
stay aligned ("999 us" is followed by "1.00 ms", never by "1000 us").
"""

from __future__ import annotations

import enum
import math
import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len, set_cell_size

if TYPE_CHECKING:
    from deepcontext.profiler.format.frame import Frame

_TIME_UNITS: Final = ((1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s"))
_BYTE_UNITS: Final = tuple(
    (1024.0**power, unit) for power, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB"))
)
_COUNT_UNITS: Final = ((1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"), (1e15, "P"))
_FLOP_UNITS: Final = tuple(
    (1000.0**power, f"{prefix}FLOP")
    for power, prefix in enumerate(("", "k", "M", "G", "T", "P", "E"))
)
_BANDWIDTH_UNITS: Final = tuple(
    (1000.0**power, f"{prefix}B/s") for power, prefix in enumerate(("", "k", "M", "G", "T", "P"))
)
_EXACT_COUNT_BELOW: Final = 1_000_000
_WHOLE_COUNT_FROM: Final = 100
# The names of these kernels differ only in the template's argument.
_CUTLASS: Final = re.compile(r"\bcutlass::Kernel2?<([\w:]+)")
_MINUTE_S: Final = 60
_HOUR_S: Final = 3600


@dataclass(frozen=True, slots=True)
class Glyphs:
    """Characters with an ASCII replacement for terminals that cannot show them.

    `bars` fills the parts of a divided bar; the fillings differ, so colour is not needed. `levels` are
    columns of growing height, the first for nothing.
    """

    ellipsis: str = "…"
    plus_minus: str = "±"
    bars: str = "█▓▚▒░·"
    levels: str = " ▁▂▃▄▅▆▇█"
    branch: str = "├ "
    last_branch: str = "└ "
    trunk: str = "│ "


UNICODE: Final = Glyphs()
ASCII: Final = Glyphs(
    ellipsis="...",
    plus_minus="+-",
    bars="#=%+-.",
    levels=" .:-=+*%#",
    branch="|-",
    last_branch="`-",
    trunk="| ",
)


def format_ns(duration_ns: float | None) -> str:
    """Return a duration as ``"1.23 ms"``; "-" for None, "0" for nothing."""
    if duration_ns is None or not math.isfinite(duration_ns):
        return "-"
    if abs(duration_ns) >= 1e12:  # noqa: PLR2004  1000 s: seconds no longer fit in three digits
        return _clock(duration_ns / 1e9)
    return _scaled(duration_ns, _TIME_UNITS)


def format_bytes(size_bytes: float | None) -> str:
    """Return a size as ``"1.23 MiB"``; "-" for None, "0" for nothing."""
    return "-" if size_bytes is None else _scaled(size_bytes, _BYTE_UNITS)


def format_count(count: float | None) -> str:
    """Return a count as ``"12,345"``, from a million on as ``"1.23 M"``; a small mean as ``"2.50"``."""
    if count is None:
        return "-"
    if abs(count) >= _WHOLE_COUNT_FROM:
        count = round(count)
    if abs(count) < _EXACT_COUNT_BELOW and float(count).is_integer():
        return f"{int(count):,}"
    return _scaled(count, _COUNT_UNITS)


def part_of(shown: int, count: int) -> str:
    """Return ``" (8 of 1,250)"`` for a title, or "" if all rows are shown."""
    return "" if shown == count else f" ({format_count(shown)} of {format_count(count)})"


def format_flops(flops: float) -> str:
    """Return a number of floating-point operations as ``"1.23 GFLOP"``."""
    return _scaled(flops, _FLOP_UNITS)


def format_bandwidth(bytes_per_second: float) -> str:
    """Return a rate as ``"1.23 GB/s"``, in powers of 1000 as vendors state it."""
    return _scaled(bytes_per_second, _BANDWIDTH_UNITS)


def format_rate(bytes_per_second: float) -> str:
    """Return ``"8.31 MiB/s"``, "" where it is not known."""
    return f"{format_bytes(bytes_per_second)}/s" if bytes_per_second else ""


def format_share(share: float | None) -> str:
    """Return a fraction of the whole as ``"12.3 %"``; a small fraction as ``"< 0.1 %"``."""
    if share is None or not math.isfinite(share):
        return "-"
    percent = 100.0 * share
    if 0.0 < percent < 0.05:  # noqa: PLR2004  would be rounded to 0.0
        return "< 0.1 %"
    return f"{percent:.1f} %" if round(percent, 1) < 100.0 else f"{percent:.0f} %"  # noqa: PLR2004


def format_value(value: float | None, unit: str) -> str:
    """Return a metric's value in its unit (``ns``, ``bytes``, ``count`` or ``flop``)."""
    if unit == "ns":
        return format_ns(value)
    if unit == "bytes":
        return format_bytes(value)
    return format_count(value)


def format_mean_sd(mean_ns: float | None, sd_ns: float | None, glyphs: Glyphs = UNICODE) -> str:
    """Return ``"1.23 ms ± 4 %"``: the deviation relative to the mean, which fits any column.

    Times that scatter more than this say nothing by their deviation; a range does.
    """
    if mean_ns is None:
        return "-"
    if sd_ns is None or mean_ns <= 0 or sd_ns > mean_ns:
        return format_ns(mean_ns)
    return f"{format_ns(mean_ns)} {glyphs.plus_minus} {100 * sd_ns / mean_ns:.0f} %"


def printable(text: str, encoding: str = "utf-8") -> str:
    """Return `text` with control characters, and characters that `encoding` lacks, escaped.

    Names come from the profiled program; an escape sequence in a name must not control the terminal.
    """
    shown = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )
    return shown.encode(encoding, "backslashreplace").decode(encoding)


class Elide(enum.Enum):
    """Where a text that is too long is shortened."""

    START = enum.auto()  # paths: the file's name is at the end
    MIDDLE = enum.auto()  # names: both ends of "Linear 'encoder.layers.0.linear1'" identify it
    END = enum.auto()  # source code is read from the left


def elide(text: str, width: int, glyphs: Glyphs = UNICODE, where: Elide = Elide.MIDDLE) -> str:
    """Return `text` in at most `width` terminal columns; a mark replaces the removed part.

    Template arguments and parameters of a C++ function are removed before any part of its name.
    """
    if cell_len(text) > width and where is Elide.MIDDLE:
        text = plain_cpp_name(text)
    if cell_len(text) <= width:
        return text
    room = width - len(glyphs.ellipsis)
    if room < 2:  # noqa: PLR2004  not even one character on each side of the mark
        return set_cell_size(text, max(width, 0)).rstrip()
    head = {Elide.START: 0, Elide.MIDDLE: room // 3, Elide.END: room}[where]
    return f"{set_cell_size(text, head)}{glyphs.ellipsis}{_last_cells(text, room - head)}"


def plain_cpp_name(name: str) -> str:
    """Return ``at::native::kernel`` for ``void at::native::(anonymous namespace)::kernel<4>(int*)``.

    A name that is not a C++ signature is returned unchanged; `plainCppName` of the page does the same.
    """
    is_signature = name.endswith((")", ">", ") const")) and ("::" in name or name[:5] == "void ")
    if not is_signature or "operator" in name or " > " in name:
        return name
    if cutlass := _CUTLASS.search(name):
        return cutlass[1]
    kept, depth = "", 0
    for character in name.replace("(anonymous namespace)::", "").removesuffix(" const"):
        if character in "<(":
            depth += 1
        elif character in ">)":
            depth -= 1
        elif depth == 0:
            kept += character
    return kept.strip().rpartition(" ")[2] or name


def _last_cells(text: str, width: int) -> str:
    return set_cell_size(text[::-1], width)[::-1]


def _scaled(value: float, units: tuple[tuple[float, str], ...]) -> str:
    if value == 0:
        return "0"
    for factor, unit in units:
        scaled = value / factor
        digits = 0 if factor == 1.0 and float(value).is_integer() else _decimals(scaled)
        # Compare the printed number: 999.96 is printed as 1000 and belongs to the next unit.
        if round(abs(scaled), digits) < 1000 or unit == units[-1][1]:  # noqa: PLR2004
            return f"{scaled:.{digits}f} {unit}".rstrip()
    raise AssertionError  # the last unit returns


def _decimals(scaled: float) -> int:
    magnitude = abs(scaled)
    return next((digits for digits, limit in ((2, 9.995), (1, 99.95)) if magnitude < limit), 0)


def _clock(duration_s: float) -> str:
    sign, whole = ("-" if duration_s < 0 else ""), round(abs(duration_s))
    if whole < _HOUR_S:
        return f"{sign}{whole // _MINUTE_S}m {whole % _MINUTE_S:02d}s"
    return f"{sign}{whole // _HOUR_S}h {whole % _HOUR_S // _MINUTE_S:02d}m"


def shorten_path(file: str, folder: str) -> str:
    """Return `file` relative to `folder` if the file lies in the folder, otherwise unchanged."""
    prefix = folder.rstrip("/") + "/"
    return file[len(prefix) :] if folder and file.startswith(prefix) else file


def frame_label(frame: Frame) -> str:
    """Return a frame's name, with file name and line where the frame has them."""
    if not frame.file:
        return frame.name or "(unnamed)"
    if not frame.line:
        return f"{frame.name} {PurePath(frame.file).name}"
    return f"{frame.name} {PurePath(frame.file).name}:{frame.line}"
