"""Peaks of a machine: what its processors compute and move a second at most, measured or given by hand.

Two kinds of JSON hold them. A file of peaks, which `deepcontext doctor --measure` keeps in the user's cache
folder and `--peaks FILE` reads:

    format      "deepcontext peaks"
    version     1
    devices     [{"device", "cores", "threads", "flops_per_second", "bytes_per_second", "spread"}, ...]

And the section `peaks` of a profile recorded with ``--shapes``: `version`, `devices` (of the machine that was
profiled only), and `threads`, the threads that torch computes with. Runs inside the program under test, hence
the standard library only.
"""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deepcontext.errors import UserError
from deepcontext.profiler.format import own_os
from deepcontext.profiler.format.writing import FileKind, write

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SECTION: Final = "peaks"
_FORMAT: Final = "deepcontext peaks"
_VERSION: Final = 1
_KIND: Final = FileKind.beginning_with("a file of peaks", b'{\n  "format": "deepcontext peaks"')


@dataclass(frozen=True, slots=True)
class DevicePeaks:
    """What one device attains at most.

    Attributes:
        device: model of a CPU, or name of a GPU, as profiles record it.
        cores: processors of a CPU that the process may use; 0 for a GPU.
        threads: threads that computed; 0 for a GPU.
        flops_per_second: by element type ("f32", "bf16", ...), of a large product of matrices.
        bytes_per_second: read and written, of a copy larger than the caches.
        spread: by the same types and "copy", how much longer the median run took than the best, 0.1 for
            10 %; empty where nothing was measured.
    """

    device: str
    cores: int = 0
    threads: int = 0
    flops_per_second: Mapping[str, float] = field(default_factory=dict)
    bytes_per_second: float = 0.0
    spread: Mapping[str, float] = field(default_factory=dict)

    def is_of(self, device: str, cores: int) -> bool:
        """Return whether these are peaks of a machine."""
        return self.device == device and self.cores == cores


def this_cpu() -> tuple[str, int]:
    """Return the model of the processor, and the number of processors this process may use."""
    return cpu_model(), len(own_os.os.sched_getaffinity(0))


def cpu_model() -> str:
    """Return the model name of the processor, or its architecture where Linux does not name it."""
    try:
        for line in own_os.read_file("/proc/cpuinfo").decode(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


def cache_file() -> Path:
    """Return the file that measured peaks are kept in; it need not exist.

    Source: https://specifications.freedesktop.org/basedir-spec/latest/
    """
    named = os.environ.get("XDG_CACHE_HOME", "")
    folder = Path(named) if Path(named).is_absolute() else Path("~/.cache").expanduser()
    return folder / "deepcontext" / "peaks.json"


def measured() -> tuple[DevicePeaks, ...]:
    """Return the peaks in the cache, of any machine; none where the file is missing or damaged."""
    try:
        return parse(cache_file().read_bytes())
    except (OSError, ValueError, RuntimeError):  # RuntimeError: no home folder
        return ()


def keep(peaks: Sequence[DevicePeaks]) -> Path:
    """Add peaks to the cache, in place of older ones of the same device, cores and threads.

    Raises:
        UserError: the file or its folder cannot be written.
    """
    key = {(each.device, each.cores, each.threads) for each in peaks}
    others = [each for each in measured() if (each.device, each.cores, each.threads) not in key]
    file = cache_file()
    content = {"format": _FORMAT, "version": _VERSION, "devices": _rows([*others, *peaks])}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"cannot make the folder '{file.parent}': {error.strerror}; set XDG_CACHE_HOME to a folder "
            "that can be written"
        ) from error
    write(json.dumps(content, indent=2).encode() + b"\n", file, _KIND)
    return file


def read_file(path: str) -> tuple[DevicePeaks, ...]:
    """Return the peaks of a file that a person wrote or `deepcontext doctor --measure` made.

    Raises:
        UserError: the file cannot be read, or is no file of peaks.
    """
    try:
        return parse(Path(path).read_bytes())
    except OSError as error:
        raise UserError(f"cannot read '{path}': {error.strerror}; check the path") from error
    except ValueError as error:
        raise UserError(
            f"cannot read '{path}': {error}; docs/how-to/measure-peaks.md describes the file"
        ) from error


def parse(content: bytes) -> tuple[DevicePeaks, ...]:
    """Return the peaks of a file's content.

    Raises:
        ValueError: the content is no file of peaks; the message says what was expected.
    """
    found = json.loads(content)
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        raise ValueError(f'expected an object with "format": "{_FORMAT}"')
    if found.get("version") != _VERSION:
        raise ValueError(f"version {found.get('version')!r}, this build reads {_VERSION}")
    return _devices(found)


def encode_section(peaks: Iterable[DevicePeaks], threads: int) -> bytes:
    """Return the payload of the section `peaks`; `threads` is 0 where they are not known."""
    content = {"version": _VERSION, "threads": threads, "devices": _rows(peaks)}
    return json.dumps(content, sort_keys=True).encode()


def decode_section(payload: bytes) -> tuple[tuple[DevicePeaks, ...], int]:
    """Return the peaks and the number of threads of a section; nothing of one that cannot be read."""
    try:
        found = json.loads(payload)
        return _devices(found), int(found["threads"])
    except (ValueError, KeyError, TypeError):
        return (), 0


def _rows(peaks: Iterable[DevicePeaks]) -> list[dict[str, Any]]:
    return [asdict(each) for each in peaks]


def _devices(found: Mapping[str, Any]) -> tuple[DevicePeaks, ...]:
    try:
        return tuple(
            DevicePeaks(
                device=str(row["device"]),
                cores=int(row.get("cores", 0)),
                threads=int(row.get("threads", 0)),
                flops_per_second={k: float(v) for k, v in row.get("flops_per_second", {}).items()},
                bytes_per_second=float(row.get("bytes_per_second", 0.0)),
                spread={k: float(v) for k, v in row.get("spread", {}).items()},
            )
            for row in found["devices"]
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"a device with other keys than expected ({error})") from error
