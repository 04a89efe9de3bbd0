"""Files of other samplers, and deepcontext's own exports, become profiles with the same paths and sums."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.importing.opening import load
from deepcontext.profiler.importing.pprof import PprofReader
from deepcontext.profiler.importing.source_file import SourceFile
from deepcontext.ui.cli.app import main
from tests.profiler.importing import traces

if TYPE_CHECKING:
    from pathlib import Path

    from deepcontext.profiler.model.profile import Profile

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def sums(profile: Profile, metric: str) -> dict[str, int]:
    """Return the values of a metric by path."""
    found: dict[str, int] = {}
    values = profile.exclusive(metric)
    for node in range(len(profile.tree)):
        if values[node]:
            path = " > ".join(frame.name for frame in profile.path(node)[1:])
            found[path] = found.get(path, 0) + int(values[node])
    return found


def text_of(path: Path, content: str) -> Profile:
    path.write_text(content)
    return load(path)


@pytest.mark.parametrize("form", ["speedscope", "pprof"])
def test_exports_are_read_back(tmp_path: Path, form: str) -> None:
    trace = traces.write(tmp_path / "trace.json", traces.training(), **traces.NVIDIA)
    saved = tmp_path / "exported"
    assert main(["export", "--format", form, str(trace), "-o", str(saved)]) == 0
    before, after = load(trace), load(saved)
    for metric in ("gpu_time_ns", "launch_count", "gpu_idle_ns"):
        assert sums(after, metric) == sums(before, metric), metric
    assert sums(after, "traced_time_ns") == sums(before, "elapsed_time_ns")
    assert main(["report", str(saved)]) == 0


def test_an_export_of_collapsed_stacks_is_read_back(tmp_path: Path) -> None:
    trace = traces.write(tmp_path / "trace.json", traces.training(), **traces.NVIDIA)
    saved = tmp_path / "exported"
    assert main(["export", "--format", "collapsed", str(trace), "-o", str(saved)]) == 0
    lines = [line.rpartition(" ") for line in saved.read_text().splitlines()]
    assert lines
    after = load(saved)
    assert sum(sums(after, "samples_count").values()) == sum(int(value) for _, _, value in lines)
    assert after.trust.counters["paths_read"] == len(lines)


def test_collapsed_stacks_of_py_spy(tmp_path: Path) -> None:
    profile = text_of(
        tmp_path / "a",
        "main (train.py:12);step (train.py:30);[libc.so] 7\r\nmain (train.py:12) 2\n",
    )
    assert sums(profile, "samples_count") == {"main > step > [libc.so]": 7, "main": 2}
    frames = {frame.name: frame for frame in profile.frames}
    assert (frames["step"].kind, frames["step"].file, frames["step"].line) == (
        FrameKind.PYTHON,
        "train.py",
        30,
    )
    assert frames["[libc.so]"].kind is FrameKind.NATIVE


def speedscope(*profiles: dict[str, Any], **facts: object) -> str:
    frames = [{"name": "main", "file": "a.py", "line": 3}, {"name": "work"}]
    return json.dumps({
        "$schema": SCHEMA,
        **facts,
        "shared": {"frames": frames},
        "profiles": profiles,
    })


def evented(*events: tuple[str, int, int]) -> dict[str, Any]:
    return {
        "type": "evented",
        "name": "thread 1",
        "unit": "milliseconds",
        "startValue": 0,
        "endValue": 10,
        "events": [{"type": kind, "frame": frame, "at": at} for kind, frame, at in events],
    }


def test_opened_and_closed_frames_of_speedscope(tmp_path: Path) -> None:
    events = (("O", 0, 0), ("O", 1, 2), ("C", 1, 5), ("C", 0, 6))
    profile = text_of(tmp_path / "a", speedscope(evented(*events)))
    assert sums(profile, "traced_time_ns") == {"main": 3_000_000, "main > work": 3_000_000}
    both = text_of(tmp_path / "b", speedscope(evented(*events), evented(*events)))
    assert sums(both, "traced_time_ns")["thread 1 > main"] == 6_000_000


# Written by hand after proto/profile.proto: cpu in nanoseconds, one function inlined into another.
PPROF = bytes.fromhex("0a0408011002") + b"".join([
    bytes.fromhex("12070a010112029003"),  # one sample at location 1, value 400
    bytes.fromhex("220c080122040801100522020802"),
    bytes.fromhex("2a06080110032005"),
    bytes.fromhex("2a0408021004"),
    b"2\x00",
    *(
        b"2" + bytes([len(text)]) + text
        for text in (b"cpu", b"nanoseconds", b"inner", b"outer", b"a.py")
    ),
])


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_inlined_functions_of_pprof(tmp_path: Path, pack: Any) -> None:
    (tmp_path / "a").write_bytes(pack(PPROF))
    profile = load(tmp_path / "a")
    assert sums(profile, "sampled_cpu_time_ns") == {"outer > inner": 400}
    frames = {frame.name: frame for frame in profile.frames}
    assert (frames["inner"].kind, frames["inner"].line) == (FrameKind.PYTHON, 5)


@pytest.mark.parametrize(
    "content",
    [
        b"a;b 5\nc;d\n" * 10_000,
        b"a;b 0\n",
        speedscope(evented(("O", 0, 0), ("C", 1, 5))).encode(),
        speedscope(evented(("O", 9, 0), ("C", 9, 5))).encode(),
        speedscope(evented() | {"unit": "bytes"}).encode(),
        speedscope()[:-5].encode(),
        PPROF[:-30],
        PPROF[:20],
        PPROF.replace(b"\x0a\x01\x01", b"\x0a\x01\x07"),
    ],
)  # fmt: skip
def test_damaged_files(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ProfileDataError) as caught:
        load(tmp_path / "a")
    assert "\n" not in str(caught.value)
    assert str(tmp_path / "a") in str(caught.value)


def test_a_picture_is_no_pprof_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\n\x7f\x08" + bytes(100))
    assert not PprofReader().recognises(SourceFile.open(tmp_path / "a").head)
