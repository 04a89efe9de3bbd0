"""NCCL's profiler interface: the native core as a plugin of a fake NCCL, which has the true tables.

No NCCL is here: `native/abi/check/nccl_check.cpp` compares the tables with its headers; how it calls them is
known from its sources.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kit
import pytest

import deepcontext
from deepcontext import _native
from deepcontext.collectors.gpu.nccl import VARIABLE, Nccl
from deepcontext.collectors.python.frames import PythonFrames
from deepcontext.profiler.format.status import Status
from deepcontext.profiler.model.job.fold import merge
from deepcontext.profiler.recording.options import SessionOptions
from deepcontext.profiler.recording.session_manager import SessionManager
from deepcontext.profiler.summaries.nccl import by_algorithm
from deepcontext.ui.cli.app import main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deepcontext import Profile
    from deepcontext.profiler.model.trust import CollectorReport

ROOT = Path(__file__).resolve().parents[3]
US = 1_000
MIB = 1 << 20


class FakeNccl:
    """NCCL with one proxy thread; a communicator has four ranks."""

    def __init__(self, file: Path) -> None:
        self._library = ctypes.CDLL(str(file))
        self._library.fake_nccl_events.restype = ctypes.c_uint64

    def load(self, newest: int = 6) -> int:
        return int(self._library.fake_nccl_load(newest))

    def unload(self) -> None:
        self._library.fake_nccl_unload()

    def open(self, number: int = 7, rank: int = 1) -> int:
        return int(self._library.fake_nccl_init(ctypes.c_uint64(number), 4, rank))

    def close(self, communicator: int) -> None:
        self._library.fake_nccl_finalize(communicator)

    def run(self, communicator: int, function: str = "AllReduce", **more: Any) -> None:
        """Run a collective of a MiB of floats, whose kernel takes 100 us."""
        values: dict[str, Any] = {
            "count": MIB // 4,
            "algorithm": "RING",
            "protocol": "SIMPLE",
            "channels": 8,
            "us": 100,
            "proxy_us": 0,
            "foreign": False,
        } | more
        self._library.fake_nccl_collective(
            communicator,
            function.encode(),
            ctypes.c_uint64(values["count"]),
            b"ncclFloat32",
            str(values["algorithm"]).encode(),
            str(values["protocol"]).encode(),
            values["channels"],
            ctypes.c_uint64(values["us"] * US),
            values["proxy_us"],
            int(values["foreign"]),
        )

    def send(self, communicator: int, count: int) -> None:
        self._library.fake_nccl_send(
            communicator, ctypes.c_uint64(count), b"ncclBfloat16", ctypes.c_uint64(10 * US)
        )

    def nonsense(self, communicator: int) -> None:
        self._library.fake_nccl_nonsense(communicator)

    def wait(self) -> None:
        self._library.fake_nccl_wait()

    @property
    def mask(self) -> int:
        return int(self._library.fake_nccl_mask())

    @property
    def events(self) -> int:
        return int(self._library.fake_nccl_events())


@pytest.fixture(scope="session")
def library() -> Path:
    return kit.built(["fake_nccl"]) / "libnccl.so.2"


@pytest.fixture
def nccl(library: Path) -> Iterator[FakeNccl]:
    made = FakeNccl(library)
    yield made
    made.wait()
    assert VARIABLE not in os.environ


def recorded(work: Callable[[], None], *, asked: bool = True) -> tuple[Profile, CollectorReport]:
    manager = SessionManager()
    manager.start(None, SessionOptions(nccl=asked), (PythonFrames, Nccl))
    try:
        work()
    finally:
        capture = manager.stop()
    profile = deepcontext.Profile.from_bytes(capture.encode())
    (report,) = (each for each in profile.trust.collectors if each.name == "nccl")
    return profile, report


@pytest.mark.parametrize("newest", [6, 5, 4])
def test_operation_algorithm_bytes_and_times_of_each_version(nccl: FakeNccl, newest: int) -> None:
    def work() -> None:
        assert nccl.load(newest) == newest
        communicator = nccl.open()
        for us in (100, 300):
            nccl.run(communicator, us=us)
        nccl.run(communicator, count=16, algorithm="TREE", protocol="LL", channels=1, us=10)
        nccl.run(communicator, "AllGather", count=MIB // 4, us=50, proxy_us=2_000)
        nccl.send(communicator, 512)
        nccl.wait()
        nccl.close(communicator)
        nccl.unload()

    profile, report = recorded(work)
    assert report.status is Status.RAN
    rows = {(row.function, row.algorithm, row.protocol): row for row in by_algorithm(profile)}
    ring = rows["AllReduce", "RING", "SIMPLE"]
    assert (ring.members, ring.calls, ring.size_bytes) == (4, 2, MIB)
    assert (ring.kernel_ns, ring.shortest_ns) == (400 * US, 100 * US)
    assert ring.bytes_per_s == pytest.approx(2 * MIB / 400e-6)
    assert ring.bus_bytes_per_s == pytest.approx(2 * MIB / 400e-6 * 1.5)
    assert ring.proxied_share == ring.proxy_ns == 0
    assert rows["AllReduce", "TREE", "LL"].size_bytes == 64
    gather = rows["AllGather", "RING", "SIMPLE"]
    assert gather.size_bytes == 4 * MIB  # of the larger side: a part of each rank
    assert gather.bus_bytes_per_s == pytest.approx(0.75 * gather.bytes_per_s)
    assert gather.proxied_share == 1
    assert gather.proxy_ns >= 1_500 * US
    assert rows["Send", "", ""].size_bytes == 1024


def test_the_report_shows_what_nccl_told(
    nccl: FakeNccl, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def work() -> None:
        nccl.load()
        communicator = nccl.open()
        nccl.run(communicator, proxy_us=1_000)
        nccl.wait()
        nccl.close(communicator)
        nccl.unload()

    file = str(tmp_path / "train.dcprof")
    recorded(work)[0].save(file)
    assert main(["report", "--full", file]) == 0
    printed = capsys.readouterr().out
    assert "Collectives of NCCL" in printed
    assert "AllReduce 1.00 MiB RING SIMPLE" in printed
    assert main(["report", "--json", file]) == 0
    (row,) = json.loads(capsys.readouterr().out)["nccl"]
    page = (ROOT / "docs" / "reference" / "report-json.md").read_text(encoding="utf-8")
    assert all(f"| `nccl.{key}` |" in page for key in row)
    assert page.count("| `nccl.") == len(row)


def test_classes_of_sizes_and_communicators_are_kept_apart(nccl: FakeNccl) -> None:
    def work() -> None:
        nccl.load()
        first, second = nccl.open(7), nccl.open(8)
        for count in (1_000, 1_010, 5_000):
            nccl.run(first, count=count)
        nccl.run(second, count=1_000)
        nccl.wait()
        for communicator in (first, second):
            nccl.close(communicator)
        nccl.unload()

    profile, _ = recorded(work)
    content = json.loads(profile.sections["nccl"])
    assert [each["id"] for each in content["communicators"]] == ["7", "8"]
    assert [(row["communicator"], row["calls"]) for row in content["calls"]] == [
        (0, 2),
        (0, 1),
        (1, 1),
    ]
    assert sorted(row.calls for row in by_algorithm(profile)) == [1, 3]  # of both communicators


def test_outside_of_a_session_nothing_is_asked_for(
    nccl: FakeNccl, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv(VARIABLE, _native.__file__)
        nccl.load()
    communicator = nccl.open()
    assert nccl.mask == 0
    before = nccl.events
    nccl.run(communicator)
    nccl.wait()
    assert nccl.events == before

    def work() -> None:
        nccl.run(communicator)
        nccl.wait()

    profile, report = recorded(work)
    assert report.status is Status.RAN
    assert [row.calls for row in by_algorithm(profile)] == [1]
    assert nccl.mask == 0  # again

    _, off = recorded(lambda: nccl.run(communicator), asked=False)
    assert off.status is Status.OFF
    assert nccl.mask == 0
    nccl.wait()
    nccl.close(communicator)
    nccl.unload()


def test_a_plugin_of_the_program_is_left_alone(
    nccl: FakeNccl, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv(VARIABLE, "/opt/inspector.so")
        _, report = recorded(lambda: None)
        assert os.environ[VARIABLE] == "/opt/inspector.so"
    del nccl
    assert report.status is Status.UNAVAILABLE
    assert "is set (/opt/inspector.so)" in report.reason


def test_without_nccl_the_profile_says_so() -> None:
    profile, report = recorded(lambda: None)
    assert report.status is Status.OFF
    assert "no communicator" in report.reason
    assert "nccl" not in profile.sections


def test_handles_that_were_never_given_are_refused(nccl: FakeNccl) -> None:
    def work() -> None:
        nccl.load()
        communicator = nccl.open()
        nccl.nonsense(communicator)
        nccl.run(communicator, proxy_us=1, foreign=True)
        nccl.wait()
        nccl.close(communicator)
        nccl.unload()

    profile, _ = recorded(work)
    (row,) = by_algorithm(profile)
    assert (row.calls, row.kernel_ns) == (1, 100 * US)
    assert row.proxied_share == 0  # the proxy worked for another process


def test_times_of_calls_that_are_forgotten_are_counted_as_missing(nccl: FakeNccl) -> None:
    """The proxy thread is busy while more calls are made than are kept open."""

    def work() -> None:
        nccl.load()
        communicator = nccl.open()
        nccl.run(communicator, proxy_us=200_000)
        for _ in range(3_000):
            nccl.run(communicator)
        nccl.wait()
        nccl.close(communicator)
        nccl.unload()

    profile, report = recorded(work)
    content = json.loads(profile.sections["nccl"])
    (row,) = content["calls"]
    assert row["calls"] == 3_001
    assert 1_000 <= row["timed"] < 3_001
    assert content["late"] > 0
    assert report.status is Status.DEGRADED


def test_tables_that_are_full_cost_events_and_are_told(nccl: FakeNccl) -> None:
    def work() -> None:
        nccl.load()
        communicators = [nccl.open(number) for number in range(100)]
        for communicator in communicators:
            for bits in range(12):
                nccl.run(communicator, count=1 << bits, channels=1)
        for number in range(100):
            nccl.run(communicators[0], f"Operation{number}")
        nccl.wait()
        for communicator in communicators:
            nccl.close(communicator)
        nccl.unload()

    profile, report = recorded(work)
    content = json.loads(profile.sections["nccl"])
    assert len(content["communicators"]) == 64
    assert len(content["calls"]) == 512
    assert content["dropped"] > 0
    assert report.status is Status.DEGRADED


def test_threads_that_call_at_once_lose_nothing_unseen(nccl: FakeNccl) -> None:
    def work() -> None:
        nccl.load()
        communicators = [nccl.open(number) for number in range(4)]

        def call(communicator: int) -> None:
            for _ in range(500):
                nccl.run(communicator, channels=2, us=1)

        threads = [threading.Thread(target=call, args=[each]) for each in communicators]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        nccl.wait()
        for communicator in communicators:
            nccl.close(communicator)
        nccl.unload()

    profile, _ = recorded(work)
    content = json.loads(profile.sections["nccl"])
    calls = sum(row["calls"] for row in content["calls"])
    assert calls <= 2_000 <= calls + content["dropped"]


def test_ranks_are_summed(nccl: FakeNccl) -> None:
    def work() -> None:
        nccl.load()
        communicator = nccl.open()
        nccl.run(communicator)
        nccl.wait()
        nccl.close(communicator)
        nccl.unload()

    profiles = {}
    for rank in range(2):
        profile, _ = recorded(work)
        profiles[f"rank{rank}"] = profile
    (row,) = by_algorithm(merge(profiles, unrelated=True))
    assert (row.calls, row.kernel_ns) == (2, 200 * US)


@pytest.mark.processes
def test_a_child_that_is_not_profiled_records_nothing(library: Path, tmp_path: Path) -> None:
    """It has inherited the variable, and loads the plugin into a process without a session."""
    program = tmp_path / "child.py"
    program.write_text(
        f"""
import ctypes, sys
library = ctypes.CDLL({str(library)!r})
version = library.fake_nccl_load(6)
library.fake_nccl_init(ctypes.c_uint64(3), 4, 0)
print(version, library.fake_nccl_mask(), "deepcontext" in sys.modules)
""",
        encoding="utf-8",
    )
    environment = {**os.environ, VARIABLE: _native.__file__}
    done = subprocess.run(
        [sys.executable, str(program)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == ["6", "0", "False"]
