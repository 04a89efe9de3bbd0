"""Hooks on PyTorch's allocators, against stand-ins for its libraries (tests/fakes/c10*.cpp)."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

FAKES = Path(__file__).resolve().parents[1] / "fakes"
sys.path.insert(0, str(FAKES))
import kit  # noqa: E402

# What every program below begins with: a session in which both allocators are watched.
PRELUDE = """
    import ctypes
    import os
    import threading
    from contextlib import contextmanager
    from conftest import call_source, session, totals
    from deepcontext import _native

    host = ctypes.CDLL({folder!r} + "/libc10.so")
    device = ctypes.CDLL({folder!r} + "/libc10_cuda.so")
    for name in ("fake_allocate", "fake_allocate_elsewhere"):
        getattr(host, name).restype = ctypes.c_void_p
        getattr(host, name).argtypes = [ctypes.c_size_t]
    host.fake_free.argtypes = [ctypes.c_void_p]
    host.fake_reported.restype = ctypes.c_int64
    device.fake_report.argtypes = [
        ctypes.c_void_p, ctypes.c_int64, ctypes.c_size_t, ctypes.c_int
    ]
    allocate, free, report = host.fake_allocate, host.fake_free, device.fake_report

    def check(allocate=allocate, bytes=4099):
        free(allocate(64))
        _native.torch_begin_host_check()
        address = allocate(4099)
        free(address)
        return _native.torch_finish_host_check(address, bytes)

    @contextmanager
    def watched():
        with session():
            _native.memory_start()
            assert _native.torch_find_host_allocator() == ""
            assert check() == ""
            assert _native.torch_watch_devices() == ["libc10_cuda.so"]
            try:
                yield
            finally:
                assert _native.torch_is_memory_watched()
                _native.memory_stop()
"""


@pytest.fixture(scope="session")
def folder() -> str:
    return str(kit.built(("fake_c10", "fake_c10_cuda")))


@pytest.fixture
def run(folder: str, in_subprocess: Callable[[str], str]) -> Callable[[str], str]:
    """Run a program after the prelude, and give what it printed."""

    def run_it(program: str) -> str:
        prelude = textwrap.dedent(PRELUDE.format(folder=folder))
        return in_subprocess(prelude + textwrap.dedent(program))

    return run_it


def test_allocations_go_to_their_line_and_frees_to_the_allocating_one(
    run: Callable[[str], str],
) -> None:
    run("""
        with watched():
            call_source('''
                kept = allocate(1000)
                passed_on = allocate(500)
                for turn in range(3):
                    free(allocate(10))
                worker = threading.Thread(target=free, args=(passed_on,))
                worker.start()
                worker.join()
            ''', allocate=allocate, free=free, threading=threading)
        assert totals("alloc_bytes") == {
            ("<module>:1",): 1000, ("<module>:2",): 500, ("<module>:4",): 30
        }, totals("alloc_bytes")
        assert totals("live_bytes") == {("<module>:1",): 1000}
        assert totals("peak_bytes") == {
            ("<module>:1",): 1000, ("<module>:2",): 500, ("<module>:4",): 10
        }
    """)


def test_each_device_has_its_own_peak_and_the_framework_hears_all_reports(
    run: Callable[[str], str],
) -> None:
    run("""
        with watched():
            call_source('''
                report(4096, 100, 1024, 0)
                report(4096, -100, 1024, 0)
                report(8192, 70, 2048, 1)
                report(4096, 30, 512, 0)
            ''', report=report)
        pools = {pool["name"]: pool for pool in _native.memory_summary()["pools"]}
        assert set(pools) == {"cuda:0", "cuda:1"}, pools
        assert pools["cuda:0"]["peak_bytes"] == 100
        assert pools["cuda:0"]["live_bytes"] == 30
        assert pools["cuda:0"]["reserved_peak_bytes"] == 1024
        assert pools["cuda:1"]["peak_bytes"] == 70
        assert totals("gpu_peak_bytes") == {("<module>:1",): 100, ("<module>:3",): 70}
        assert totals("gpu_live_bytes") == {("<module>:3",): 70, ("<module>:4",): 30}
        assert totals("live_bytes") == {}
        assert host.fake_reported() == 100 + 70 + 30 - 100 + 1
    """)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("allocate=host.fake_allocate_elsewhere", "does not come from posix_memalign"),
        ("bytes=4100", "is requested in another size"),
    ],
)
def test_an_allocator_that_works_otherwise_is_refused_and_left_alone(
    run: Callable[[str], str], how: str, reason: str
) -> None:
    output = run(f"""
        with session():
            _native.memory_start()
            assert _native.torch_find_host_allocator() == ""
            print(check({how}))
            free(allocate(100))
            _native.memory_stop()
        assert totals("alloc_bytes") == {{}}
    """)
    assert reason in output


def test_a_library_that_is_not_loaded_is_refused(in_subprocess: Callable[[str], str]) -> None:
    output = in_subprocess("""
        from deepcontext import _native
        print(_native.torch_find_host_allocator(), _native.torch_watch_devices())
    """)
    assert output.strip() == "libc10.so is not loaded in this process []"


def test_what_was_there_before_and_what_is_freed_after_are_no_trouble(
    run: Callable[[str], str],
) -> None:
    run("""
        early = allocate(777)
        for turn in range(3):
            with watched():
                free(early)
                late = allocate(100)
                report(4096, 64, 64, 0)
            free(late)
            report(4096, -64, 64, 0)
            early = allocate(777)
            assert sum(totals("alloc_bytes").values()) == 100
            assert sum(totals("live_bytes").values()) == 100
            assert sum(totals("gpu_live_bytes").values()) == 64
    """)


@pytest.mark.long
def test_a_forked_child_counts_nothing_and_may_begin_a_session(run: Callable[[str], str]) -> None:
    run("""
        stop = threading.Event()
        def churn():
            while not stop.is_set():
                free(allocate(32))
        with watched():
            kept = allocate(1000)
            worker = threading.Thread(target=churn)
            worker.start()
            for turn in range(20):
                child = os.fork()
                if child == 0:
                    free(kept)
                    free(allocate(5))
                    _native.end()
                    _native.memory_stop()
                    with watched():
                        late = allocate(12)
                    os._exit(7 if sum(totals("live_bytes").values()) == 12 else 1)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
            stop.set()
            worker.join()
        assert sum(totals("live_bytes").values()) == 1000
    """)


def test_threads_that_allocate_and_free_for_each_other(run: Callable[[str], str]) -> None:
    run("""
        import queue
        handed = queue.SimpleQueue()
        def make():
            for size in range(1, 2001):
                handed.put(allocate(size))
        def drop():
            for _ in range(2000):
                free(handed.get())
        with watched():
            threads = [threading.Thread(target=work) for work in (make, make, drop)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        left = []
        while not handed.empty():
            left.append(handed.get())
        assert len(left) == 2000
        assert sum(totals("alloc_bytes").values()) == 2 * sum(range(1, 2001))
        summary = _native.memory_summary()["pools"][0]
        assert sum(totals("live_bytes").values()) == summary["live_bytes"] > 0
        assert sum(totals("peak_bytes").values()) == summary["peak_bytes"]
    """)
