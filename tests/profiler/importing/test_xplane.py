"""An XPlane file of JAX's profiler becomes a profile: Python functions, calls, kernels below their HLO."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.importing.opening import load
from deepcontext.ui.cli.app import main

_BY_JAX = """
import json, sys
from jax.profiler import ProfileData
planes = [each for each in ProfileData.from_file(sys.argv[1]).planes if "/device:GPU" in each.name]
lines = [line for plane in planes for line in plane.lines if line.name.startswith("Stream #")]
events = [event for line in lines for event in line.events]
print(json.dumps([(each.name.removesuffix(".kd"), each.duration_ns) for each in events]))
"""


def varint(value: int) -> bytes:
    """Encode a number, as protobuf.dev, "Encoding", says."""
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def message(*fields: tuple[int, int | str | bytes]) -> bytes:
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(data)) + data
    return out


class Plane:
    """Writes one plane with its tables of names."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._events: dict[str, int] = {}
        self._stats: dict[str, int] = {}
        self._lines: list[bytes] = []
        self._own: list[bytes] = []

    def stat(self, name: str, value: int | str) -> bytes:
        number = self._stats.setdefault(name, len(self._stats) + 1)
        return message((1, number), (3 if isinstance(value, int) else 5, value))

    def fact(self, name: str, value: int | str) -> None:
        self._own.append(self.stat(name, value))

    def line(self, name: str, *events: tuple[str, int, int, dict[str, Any]]) -> None:
        """Add a line; events have a name, begin and duration in us, and values."""
        made = []
        for text, begin, duration, values in events:
            number = self._events.setdefault(text, len(self._events) + 1)
            stats = [(4, self.stat(key, value)) for key, value in values.items()]
            times = ((2, begin * 10**6), (3, duration * 10**6))
            made.append((4, message((1, number), *times, *stats)))
        self._lines.append(message((2, name), (3, 1000), *made))

    def encode(self) -> bytes:
        tables = [
            (field, message((1, number), (2, message((1, number), (2, text)))))
            for field, names in ((4, self._events), (5, self._stats))
            for text, number in names.items()
        ]
        lines = [(3, line) for line in self._lines]
        return message((1, 1), (2, self.name), *lines, *tables, *((6, each) for each in self._own))


def space(vendor: str = "AMD", device: str = "/device:GPU:0") -> bytes:
    host = Plane("/host:CPU")
    host.line(
        "python",
        ("$train.py:10 main", 0, 400, {}),
        ("train", 0, 200, {"step_num": 0}),
        ("train", 200, 200, {"step_num": 1}),
        ("PjitFunction(f)", 10, 100, {}),
    )
    hlo = {"correlation_id": 5, "hlo_op": "fusion.1", "hlo_module": "jit_f"}
    host.line("Host Threads/77", ("hipModuleLaunchKernel", 20, 5, hlo))
    gpu = Plane(device)
    gpu.fact("device_vendor", vendor)
    kernel = {"correlation_id": 5, "kernel_details": "grid:4,2,1 block:64,1,1"}
    copy = {"memcpy_details": "kind:x size:4096 dest:0"}
    gpu.line("Stream #3(Kernel)", ("fusion_1.kd", 50, 30, kernel), ("MemcpyD2H", 90, 10, copy))
    gpu.line("XLA Ops", ("fusion.1", 50, 30, {}))
    task = Plane("Task Environment")
    task.fact("profile_start_time", 1_700_000_000 * 10**9)
    return message(*((1, plane.encode()) for plane in (host, gpu, task)))


def paths(path: Path, name: str) -> list[str]:
    profile = load(path)
    return [
        " > ".join(frame.name for frame in profile.path(node)[1:])
        for node in range(len(profile.tree))
        if profile.frame(node).name == name
    ]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "a").write_bytes(space())
    return tmp_path / "a"


def test_kernels_are_below_their_program_and_operation(file: Path) -> None:
    assert paths(file, "fusion_1") == ["Host Threads > jit_f > fusion.1 > fusion_1"]
    assert paths(file, "PjitFunction(f)") == ["MainThread > main > PjitFunction(f)"]
    profile = load(file)
    assert profile.metrics["gpu_time_ns"].total.tolist() == [30_000, 10_000]
    assert profile.metrics["queue_delay_ns"].total.tolist() == [30_000]
    assert profile.metrics["grid_block_count"].total.tolist() == [8]
    assert profile.metrics["copy_bytes"].total.tolist() == [4096]
    assert profile.trust.counters["device_records"] == 2  # derived lines repeat the streams
    assert profile.run.steps == 2
    assert profile.run.start_unix_ns // 10**9 == 1_700_000_000


@pytest.mark.parametrize(("vendor", "wrong"), [("AMD", "NVIDIA"), ("Nvidia", "AMD")])
def test_the_vendor_is_that_of_the_device(
    tmp_path: Path, vendor: str, wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a").write_bytes(space(vendor))
    assert main(["report", "--full", str(tmp_path / "a")]) == 0
    assert wrong not in capsys.readouterr().out
    assert vendor.lower() in {each.name for each in load(tmp_path / "a").trust.collectors}


def test_devices_that_are_no_gpus_are_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(space(device="/device:TPU:0"))
    assert any("/device:TPU:0 left out" in note for note in load(tmp_path / "a").trust.notes)


@pytest.mark.parametrize(
    "content",
    [
        space()[:-7],
        space()[:100],
        message((1, Plane("/host:CPU").encode())),
        space()[:60] + b"\xff" * 99,
    ],
)
def test_damaged_files(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ProfileDataError) as caught:
        load(tmp_path / "a")
    assert "\n" not in str(caught.value)
    assert str(tmp_path / "a") in str(caught.value)


@pytest.mark.traces
def test_a_real_file_equals_what_jax_reads() -> None:
    path = (
        Path(os.environ.get("DEEPCONTEXT_TRACES", "/nonexistent"))
        / "xplane_mi300_jax_conv.xplane.pb"
    )
    if not path.exists():
        pytest.skip("set DEEPCONTEXT_TRACES to a folder with xplane_mi300_jax_conv.xplane.pb")
    pytest.importorskip("jaxlib")
    counts: Counter[str] = Counter()
    times: Counter[str] = Counter()
    # In a process of its own: jax changes the environment of the one that imports it.
    run = subprocess.run(
        [sys.executable, "-c", _BY_JAX, path], check=True, capture_output=True, text=True
    )
    for name, duration in json.loads(run.stdout):
        counts[name] += 1
        times[name] += duration
    assert counts
    profile = load(path)
    rows = profile.metrics["gpu_time_ns"]
    found: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for node, count, value in zip(
        rows.node.tolist(), rows.count.tolist(), rows.total.tolist(), strict=True
    ):
        assert profile.frame(node).kind in {FrameKind.KERNEL, FrameKind.COPY}
        found[profile.frame(node).name] += count
        total[profile.frame(node).name] += value
    assert found == counts
    for name, value in times.items():
        assert total[name] == pytest.approx(value, rel=1e-3)
    assert profile.trust.counters["launches_unmatched"] == 0
