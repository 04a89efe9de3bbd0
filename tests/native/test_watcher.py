"""The watcher thread: calls on time, and leaves nothing behind."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext import _native

if TYPE_CHECKING:
    from collections.abc import Callable


def _until(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)
    return condition()


def _threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def test_it_calls_at_each_interval_until_stopped() -> None:
    calls: list[float] = []
    _native.start_watcher(lambda: calls.append(time.monotonic()), 0.01, 0.01)
    try:
        assert _until(lambda: len(calls) >= 5)
    finally:
        _native.stop_watcher()
    count = len(calls)
    time.sleep(0.1)
    assert len(calls) == count


def test_it_is_no_thread_of_pythons() -> None:
    before = threading.active_count()
    _native.start_watcher(lambda: None, 60.0, 60.0)
    try:
        assert threading.active_count() == before
    finally:
        _native.stop_watcher()


def test_a_longer_interval_takes_effect() -> None:
    calls: list[float] = []

    def once() -> None:
        _native.set_watcher_interval(60.0)
        calls.append(time.monotonic())

    _native.start_watcher(once, 0.01, 0.01)
    try:
        assert _until(lambda: bool(calls))
        time.sleep(0.2)
    finally:
        _native.stop_watcher()
    assert len(calls) == 1


def test_pausing_and_resuming() -> None:
    calls: list[float] = []
    _native.start_watcher(lambda: calls.append(time.monotonic()), 0.01, 0.01)
    try:
        assert _until(lambda: bool(calls))
        _native.pause_watcher()
        _native.pause_watcher()
        count = len(calls)
        time.sleep(0.1)
        assert len(calls) == count
        _native.resume_watcher()
        _native.resume_watcher()
        assert _until(lambda: len(calls) > count)
    finally:
        _native.stop_watcher()


def test_it_starts_again_after_the_last_of_two_forks_at_once() -> None:
    calls: list[float] = []
    _native.start_watcher(lambda: calls.append(time.monotonic()), 0.01, 0.01)
    try:
        assert _until(lambda: bool(calls))
        _native.pause_watcher()
        _native.pause_watcher()  # on another thread, for example
        _native.resume_watcher()
        count = len(calls)
        time.sleep(0.1)
        assert len(calls) == count
        _native.resume_watcher()
        assert _until(lambda: len(calls) > count)
    finally:
        _native.stop_watcher()


@pytest.mark.parametrize("end", [_native.pause_watcher, _native.stop_watcher])
def test_a_fork_waits_for_a_thread_that_another_thread_is_ending(end: Callable[[], None]) -> None:
    # CPython 3.11 lets the child wait for ever if the thread begins to ask for the GIL at the fork.
    called, returned, has_forked = threading.Event(), threading.Event(), threading.Event()

    def callback() -> None:
        called.set()
        time.sleep(0.3)
        returned.set()

    def fork_or_stop() -> None:
        end()
        if end is _native.pause_watcher:
            has_forked.wait(60)
            _native.resume_watcher()

    _native.start_watcher(callback, 0.0, 60.0)
    try:
        assert called.wait(60)
        other = threading.Thread(target=fork_or_stop)
        other.start()
        time.sleep(0.05)
        _native.pause_watcher()
        assert returned.is_set(), "the watcher's thread is there at the fork"
        has_forked.set()
        other.join()
        _native.resume_watcher()
    finally:
        _native.stop_watcher()


def test_stopping_pausing_and_resuming_what_never_started() -> None:
    _native.stop_watcher()
    _native.pause_watcher()
    _native.resume_watcher()
    _native.stop_watcher()


def test_starting_two_hundred_times() -> None:
    before = _threads()
    for _ in range(200):
        _native.start_watcher(lambda: None, 0.0, 0.001)
        _native.stop_watcher()
    assert _until(lambda: _threads() == before)


def test_the_callback_may_stop_and_start_the_watcher() -> None:
    calls: list[float] = []
    before = _threads()

    def restart() -> None:
        calls.append(time.monotonic())
        if len(calls) < 20:
            _native.stop_watcher()
            _native.start_watcher(restart, 0.001, 60.0)

    _native.start_watcher(restart, 0.001, 60.0)
    try:
        assert _until(lambda: len(calls) == 20)
        # The threads that stopped themselves have gone.
        assert _until(lambda: _threads() == before + 1)
    finally:
        _native.stop_watcher()
    assert len(calls) == 20


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_callback_that_fails_is_called_again() -> None:
    calls: list[float] = []

    def fails() -> None:
        calls.append(time.monotonic())
        raise ValueError

    unraisable = sys.unraisablehook
    sys.unraisablehook = lambda _: None
    _native.start_watcher(fails, 0.01, 0.01)
    try:
        assert _until(lambda: len(calls) >= 3)
    finally:
        _native.stop_watcher()
        sys.unraisablehook = unraisable


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with 3.12")
def test_tools_that_monitor_the_program_do_not_see_the_profilers_threads() -> None:
    seen: list[str] = []
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    starts = monitoring.events.PY_START
    monitoring.use_tool_id(monitoring.COVERAGE_ID, "test")
    monitoring.register_callback(
        monitoring.COVERAGE_ID, starts, lambda code, _: seen.append(code.co_name)
    )
    done = threading.Event()
    threads = [_native.PythonThread() for _ in range(2)]

    def of_the_profiler() -> None:
        done.set()

    def of_the_program() -> None: ...

    monitoring.set_events(monitoring.COVERAGE_ID, starts)
    try:
        _native.start_watcher(of_the_profiler, 0.01, 60.0)
        done.wait(60.0)
        _native.run_operation(of_the_profiler)
        assert threads[0].start_as_internal(of_the_profiler)
        assert threads[1].start_as_caller(of_the_profiler)
        assert all(thread.join(60.0) for thread in threads)
        of_the_program()
    finally:
        monitoring.set_events(monitoring.COVERAGE_ID, 0)
        monitoring.free_tool_id(monitoring.COVERAGE_ID)
        _native.stop_watcher()
    assert "of_the_program" in seen
    assert "of_the_profiler" not in seen
