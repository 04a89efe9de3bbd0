"""A collector starts, stops, restarts and forks without leaving anything behind."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING

from tests.collectors.gpu.test_scenarios import assert_conserved
from tests.profiled import profiled

if TYPE_CHECKING:
    from pathlib import Path

    from kit import FakeGpu

    from tests.collectors.gpu.test_scenarios import Record

FAKES = os.path.join(os.path.dirname(__file__), "..", "..", "fakes")  # noqa: PTH118, PTH120


def run(gpu: FakeGpu, source: str, **environment: str) -> str:
    """Run a program that drives the same fake; return what it printed."""
    preamble = f"""
        import sys, time
        sys.path.insert(0, {FAKES!r})
        import kit
        from pathlib import Path
        import deepcontext
        vendor = next(v for v in kit.VENDORS if v.interface == {gpu.vendor.interface!r})
        gpu = kit.FakeGpu(Path({str(gpu._folder)!r}), vendor)
        gpu.use()
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(preamble) + textwrap.dedent(source)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_two_sessions_in_a_row(record: Record, gpu: FakeGpu) -> None:
    def first() -> None:
        gpu.launch("first", us=1, count=10)
        gpu.deliver()

    def second() -> None:
        gpu.launch("second", us=1, count=20)
        gpu.deliver()

    assert record(first).kernels() == {("first", "FakeGpu.launch", "first"): 10}
    gpu.reset()
    recording = record(second)
    assert recording.kernels() == {("second", "FakeGpu.launch", "second"): 20}
    assert_conserved(recording, gpu)


def test_records_that_come_after_the_stop_are_refused(record: Record, gpu: FakeGpu) -> None:
    recording = record(lambda: gpu.launch("never delivered", us=1))
    assert recording.counters["gpu_records_received"] == 0
    gpu.deliver()  # nobody listens: neither a crash nor a record
    recording = record(gpu.deliver)
    assert recording.counters["gpu_records_received"] == 0


def test_launches_cost_nothing_after_the_stop(record: Record, gpu: FakeGpu) -> None:
    def cost() -> float:
        begun = time.thread_time_ns()
        gpu.launch("k", us=0, count=5000)
        return (time.thread_time_ns() - begun) / 5000

    before = min(cost() for _ in range(9))
    gpu.deliver()
    record(gpu.deliver)
    calls = gpu.count("callbacks")
    after = min(cost() for _ in range(9))
    gpu.deliver()
    if not gpu.vendor.stays_registered:
        assert gpu.count("callbacks") == calls
        assert gpu.count("services") == 0
    assert after <= before * 1.5 + 100


def test_every_buffer_comes_back(record: Record, gpu: FakeGpu) -> None:
    def work() -> None:
        gpu.launch("k", us=1, count=100_000)
        gpu.deliver()

    record(work)
    assert gpu.count("buffers_out") == 0


def test_a_hanging_flush_ends_with_the_deadline(gpu: FakeGpu) -> None:
    output = run(
        gpu,
        """
        deepcontext.start()
        gpu.launch("k", us=1, count=10)
        gpu.deliver()
        gpu.hang(vendor.flush, 30)
        begun = time.monotonic()
        profile = deepcontext.stop()
        print(time.monotonic() - begun < 10)
        print(next(c for c in profile.trust.collectors if c.name == vendor.name).reason)
        import os
        sys.stdout.flush()
        os._exit(0)  # the hanging call is still out
        """,
        DEEPCONTEXT_GPU_DEADLINE_S="0.5",
    )
    assert output.startswith("True\n")
    assert "did not return within" in output


def test_a_forked_child_neither_records_nor_hangs(gpu: FakeGpu) -> None:
    output = run(
        gpu,
        """
        import os, warnings
        warnings.simplefilter("error")
        deepcontext.start()
        gpu.launch("before", us=1, count=10)
        gpu.deliver()
        from deepcontext import _native
        _native.gpu_flush(vendor.interface)
        child = os.fork()
        if child == 0:
            gpu.launch("in the child", us=1, count=10)
            os._exit(0 if not _native.gpu_is_running(vendor.interface) else 7)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status))
        gpu.launch("after", us=1, count=5)
        gpu.deliver()
        profile = deepcontext.stop()
        print(profile.trust.counters["gpu_records_matched"])
        """,
    )
    assert output.split() == ["0", "15"]


def test_a_fork_while_records_are_read_does_not_hang(nvidia: FakeGpu) -> None:
    """The fork waits for the reading thread, which meets a new name and takes a lock of the fork."""
    output = run(
        nvidia,
        """
        import os
        deepcontext.start()
        gpu.buffer_records(1)
        gpu.launch("warm", us=1)
        gpu.hang("cuptiGetTimestamp", 0.1)  # asked for before a buffer's records are read
        gpu.launch("a kernel not seen before", us=1, count=3)
        gpu.deliver()
        child = os.fork()
        if child == 0:
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status))
        gpu.hang("cuptiGetTimestamp", 0)
        profile = deepcontext.stop()
        print(profile.trust.counters["gpu_records_matched"])
        """,
    )
    assert output.split() == ["0", "4"]


def test_nothing_starts_before_a_framework_is_loaded(nvidia: FakeGpu, tmp_path: Path) -> None:
    """The driver is on the machine, but the program uses no GPU."""
    code = "print(any('libcup' in line or 'libroc' in line for line in open('/proc/self/maps')))"
    done = profiled(tmp_path, code, "-q", environment=nvidia.environment())
    assert done.stdout == "False\n"


def test_no_driver_costs_nothing_and_says_so(gpu: FakeGpu) -> None:
    output = run(
        gpu,
        """
        import os
        for variable in vendor.variables:
            del os.environ[variable]
        deepcontext.start()
        gpu.launch("k", us=1)
        profile = deepcontext.stop()
        report = next(c for c in profile.trust.collectors if c.name == vendor.name)
        print(report.status, gpu.count("callbacks"))
        print(report.reason)
        print(profile.trust.warnings)
        """,
    )
    status, reason, warnings = output.splitlines()
    assert status == "off 0"
    assert "driver" in reason
    assert warnings == "()"
