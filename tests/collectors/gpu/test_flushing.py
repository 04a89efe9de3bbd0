"""CUPTI's records are fetched while their call paths are known, and only the profiler's memory is freed."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from deepcontext import _native
from tests.collectors.gpu.test_lifecycle import run
from tests.collectors.gpu.test_scenarios import assert_conserved

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest
    from kit import FakeGpu

    from tests.collectors.gpu.test_scenarios import Record

PATIENCE_S = 60


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)


def received() -> int:
    return _native.gpu_figures("cupti")["received"]


def test_records_of_a_thread_that_launches_rarely_keep_their_path(
    record: Record, nvidia: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paths of the last million launches are kept, and a buffer that is not full stays at CUPTI."""

    monkeypatch.setenv("DEEPCONTEXT_GPU_DEADLINE_S", str(PATIENCE_S))
    # A busy machine reads records slower than a loop makes them: all 1.2 million fit, so that
    # none is declined and the paths alone decide.
    monkeypatch.setenv("DEEPCONTEXT_GPU_POOL_BYTES", str(1 << 30))

    def launch_rarely() -> None:
        nvidia.launch("rare", us=10, count=5)
        nvidia.deliver()

    def work() -> None:
        thread = threading.Thread(target=launch_rarely)
        thread.start()
        thread.join()
        nvidia.launch("often", us=1, count=300_000)
        wait_for(lambda: received() >= 5)
        for times in range(1, 4):
            nvidia.launch("often", us=1, count=300_000)
            nvidia.deliver()
            wait_for(lambda: received() >= times * 300_000)  # noqa: B023  called at once

    recording = record(work)
    assert recording.counters["gpu_records_unmatched"] == 0
    assert recording.figure("early_flushes") >= 1
    rare = [path for path in recording.kernels() if "rare" in path]
    assert rare
    assert all("launch_rarely" in path for path in rare)
    assert recording.report.status == "ran", recording.report.reason
    assert_conserved(recording, nvidia)


def test_a_short_program_is_not_flushed_early(record: Record, nvidia: FakeGpu) -> None:
    def work() -> None:
        nvidia.launch("k", us=1, count=10_000)
        nvidia.deliver()

    assert record(work).figure("early_flushes") == 0


def test_old_launches_are_fetched_by_a_forced_flush(
    record: Record, nvidia: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEPCONTEXT_GPU_BACKLOG_S", "0")

    def work() -> None:
        nvidia.hold_incomplete(holding=True)
        nvidia.launch("k", us=1, count=100)
        nvidia.deliver()
        _native.gpu_flush("cupti")
        assert _native.gpu_figures("cupti")["received"] == 0
        _native.gpu_flush("cupti")  # the launches are old by now
        assert _native.gpu_figures("cupti")["received"] == 100
        _native.gpu_flush("cupti")  # nothing is outstanding

    recording = record(work)
    assert recording.figure("forced_flushes") == 1
    assert_conserved(recording, nvidia)


def test_old_launches_are_fetched_without_snapshots(
    record: Record, nvidia: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody flushes but the thread that is asked to after each 262,144 launches."""
    monkeypatch.setenv("DEEPCONTEXT_GPU_BACKLOG_S", "0")
    monkeypatch.setenv("DEEPCONTEXT_GPU_DEADLINE_S", str(PATIENCE_S))
    monkeypatch.setenv("DEEPCONTEXT_GPU_POOL_BYTES", str(1 << 30))

    def figure(name: str) -> int:
        return _native.gpu_figures("cupti")[name]

    def work() -> None:
        nvidia.hold_incomplete(holding=True)
        for times in (1, 2):
            nvidia.launch("k", us=1, count=300_000)
            wait_for(lambda: figure("early_flushes") >= times)  # noqa: B023  called at once
        wait_for(lambda: figure("forced_flushes") >= 1)
        nvidia.deliver()

    recording = record(work)
    assert recording.figure("forced_flushes") >= 1
    assert recording.counters["gpu_records_unmatched"] == 0
    assert_conserved(recording, nvidia)


def test_launches_are_old_after_ten_seconds(nvidia: FakeGpu) -> None:
    """The steady clock stands where the test puts it, so that the default time counts."""
    output = run(
        nvidia,
        """
        import ctypes
        from deepcontext import _native
        from deepcontext.collectors.gpu.collection import GpuCollection, Interface
        from deepcontext.profiler.recording.options import SessionOptions

        clock = ctypes.CDLL(None)

        def forced_flushes_at(seconds):
            clock.fake_clock_hold(ctypes.c_int64(seconds))
            collection.flush()
            return _native.gpu_figures("cupti")["forced_flushes"]

        clock.fake_clock_hold(ctypes.c_int64(0))
        collection = GpuCollection("nvidia")
        _native.begin(100_000)
        files = gpu.environment()
        libraries = files["DEEPCONTEXT_LIBCUPTI"], files["DEEPCONTEXT_LIBCUDA"]
        collection.begin(Interface("cupti", *libraries), SessionOptions())
        gpu.hold_incomplete(holding=True)
        gpu.launch("k", us=1, count=100)
        gpu.deliver()
        # Launches are old when they were there already at the last look for old ones.
        print(*(forced_flushes_at(seconds) for seconds in (9, 11, 20, 22)))
        clock.fake_clock_release()
        collection.end()
        _native.end()
        print(_native.gpu_figures("cupti")["matched"])
        """,
        LD_PRELOAD=str(nvidia._folder / "libfake_clock.so"),
    )
    assert output.split() == ["0", "0", "0", "1", "100"]


def test_a_buffer_of_another_tool_is_read_and_left_alone(nvidia: FakeGpu) -> None:
    """Freeing it would end the process: the fake's is no block of its own."""
    output = run(
        nvidia,
        """
        deepcontext.start()
        gpu.launch("k", us=1, count=10)
        gpu.deliver()
        gpu.take_over()
        gpu.launch("k", us=1, count=20)
        gpu.deliver()
        gpu.give_back()
        profile = deepcontext.stop()
        report = next(c for c in profile.trust.collectors if c.name == "nvidia")
        print(report.details["foreign_buffers"], profile.trust.counters["gpu_records_matched"])
        """,
    )
    assert output.split() == ["1", "30"]


def test_cupti_is_asked_nothing_after_the_unsubscribe(nvidia: FakeGpu) -> None:
    """A thread of CUPTI may be about to ask for dropped records; the fake ends the process then."""
    output = run(
        nvidia,
        """
        import threading
        deepcontext.start()
        gpu.buffer_records(1)
        gpu.hang("cuptiActivityGetNumDroppedRecords", 2)

        def complete_a_buffer():
            gpu.launch("k", us=1, count=2)
            gpu.deliver()

        thread = threading.Thread(target=complete_a_buffer)
        thread.start()
        while not gpu.count("hanging"):
            time.sleep(0.01)
        gpu.hang("cuptiActivityGetNumDroppedRecords", 0)
        profile = deepcontext.stop()
        thread.join()
        print(profile.trust.counters["gpu_records_received"])
        """,
    )
    assert int(output) >= 1
