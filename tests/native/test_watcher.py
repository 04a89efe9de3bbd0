"""The watcher thread: snapshots on time, a last call before a deadly signal, no trace later."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deepcontext import _native

if TYPE_CHECKING:
    from collections.abc import Callable

_TIMEOUT_S = 30


def _until(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)
    return condition()


def _threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def _dies(program: str) -> tuple[int, str]:
    """Run a program that sends itself a signal; its status and its output."""
    environment = dict(os.environ, PYTHONPATH=str(Path(_native.__file__ or "").parent.parent))
    done = subprocess.run(
        (sys.executable, "-c", textwrap.dedent(program)),
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        env=environment,
        check=False,
    )
    assert not done.stderr
    return done.returncode, done.stdout


def test_it_calls_at_each_interval_until_stopped() -> None:
    calls: list[str] = []
    _native.start_watcher(calls.append, 0.01, 0.01, [])
    try:
        assert _until(lambda: len(calls) >= 5)
    finally:
        _native.stop_watcher()
    count = len(calls)
    assert set(calls) == {"snapshot"}
    time.sleep(0.1)
    assert len(calls) == count


def test_it_is_no_thread_of_pythons() -> None:
    before = threading.active_count()
    _native.start_watcher(lambda _: None, 60.0, 60.0, [])
    try:
        assert threading.active_count() == before
    finally:
        _native.stop_watcher()


def test_a_longer_interval_takes_effect() -> None:
    calls: list[str] = []

    def once(reason: str) -> None:
        _native.set_watcher_interval(60.0)
        calls.append(reason)

    _native.start_watcher(once, 0.01, 0.01, [])
    try:
        assert _until(lambda: bool(calls))
        time.sleep(0.2)
    finally:
        _native.stop_watcher()
    assert calls == ["snapshot"]


def test_pausing_and_resuming() -> None:
    calls: list[str] = []
    _native.start_watcher(calls.append, 0.01, 0.01, [])
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


def test_stopping_pausing_and_resuming_what_never_started() -> None:
    _native.stop_watcher()
    _native.pause_watcher()
    _native.resume_watcher()
    _native.stop_watcher()


def test_starting_two_hundred_times() -> None:
    before = _threads()
    for _ in range(200):
        _native.start_watcher(lambda _: None, 0.0, 0.001, [signal.SIGHUP])
        _native.stop_watcher()
    assert _until(lambda: _threads() == before)


def test_the_callback_may_stop_and_start_the_watcher() -> None:
    calls: list[str] = []
    before = _threads()

    def restart(reason: str) -> None:
        calls.append(reason)
        if len(calls) < 20:
            _native.stop_watcher()
            _native.start_watcher(restart, 0.001, 60.0, [])

    _native.start_watcher(restart, 0.001, 60.0, [])
    try:
        assert _until(lambda: len(calls) == 20)
        # The threads that stopped themselves have gone.
        assert _until(lambda: _threads() == before + 1)
    finally:
        _native.stop_watcher()
    assert calls == ["snapshot"] * 20


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_callback_that_fails_is_called_again() -> None:
    calls: list[str] = []

    def fails(reason: str) -> None:
        calls.append(reason)
        raise ValueError(reason)

    unraisable = sys.unraisablehook
    sys.unraisablehook = lambda _: None
    _native.start_watcher(fails, 0.01, 0.01, [])
    try:
        assert _until(lambda: len(calls) >= 3)
    finally:
        _native.stop_watcher()
        sys.unraisablehook = unraisable


def test_a_signal_that_kills_is_announced_first_and_then_kills() -> None:
    for name in ("SIGTERM", "SIGHUP"):
        status, output = _dies(f"""
            import os, signal, time
            from deepcontext import _native
            _native.start_watcher(lambda reason: print(reason, flush=True), 60, 60, [signal.{name}])
            os.kill(os.getpid(), signal.{name})
            time.sleep(20)
        """)
        assert (status, output.split()) == (-getattr(signal, name), [name])


def test_a_signal_kills_a_program_that_never_gives_the_lock_back() -> None:
    begun = time.monotonic()
    status, output = _dies("""
        import ctypes, os, signal
        from deepcontext import _native
        _native.start_watcher(lambda reason: print(reason, flush=True), 60, 60, [signal.SIGTERM])
        os.kill(os.getpid(), signal.SIGTERM)
        ctypes.PyDLL(None).sleep(20)  # holds the GIL
    """)
    # The read may be cut short by the signal, and the lock then be had after all.
    assert (status, output.strip()) in {(-signal.SIGTERM, ""), (-signal.SIGTERM, "SIGTERM")}
    assert time.monotonic() - begun < 15


@pytest.mark.parametrize("library", ["CDLL", "PyDLL"], ids=["without the GIL", "with it"])
def test_a_thread_is_let_go_on_until_it_gives_back_what_the_last_call_needs(library: str) -> None:
    # As malloc's lock, or the GIL that is being handed over: the interrupted thread has it.
    status, output = _dies(f"""
        import ctypes, os, signal, threading
        from deepcontext import _native
        lock = threading.Lock()
        def last_call(reason):
            with lock:
                print(reason, flush=True)
        _native.start_watcher(last_call, 60, 60, [signal.SIGTERM])
        with lock:
            getattr(ctypes.{library}(None), "raise")(signal.SIGTERM)
            for _ in range(3):
                ctypes.CDLL(None).usleep(20_000)
        ctypes.CDLL(None).sleep(60)
        ctypes.CDLL(None).sleep(60)
    """)
    assert (status, output.split()) == (-signal.SIGTERM, ["SIGTERM"])


def test_a_signal_during_a_snapshot_that_needs_the_interrupted_thread_kills_as_well() -> None:
    status, output = _dies("""
        import ctypes, os, signal, threading
        from deepcontext import _native
        lock, is_asked = threading.Lock(), threading.Event()
        def call(reason):
            is_asked.set()
            with lock:
                print(reason, flush=True)
        with lock:
            _native.start_watcher(call, 0, 60, [signal.SIGTERM])
            is_asked.wait()
            getattr(ctypes.CDLL(None), "raise")(signal.SIGTERM)
        ctypes.CDLL(None).sleep(60)
    """)
    assert (status, output.split()) == (-signal.SIGTERM, ["snapshot", "SIGTERM"])


def test_the_programs_own_handlers_are_left_alone() -> None:
    status, output = _dies("""
        import os, signal
        from deepcontext import _native
        signal.signal(signal.SIGTERM, lambda *_: print("own"))
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signals = [signal.SIGTERM, signal.SIGHUP]
        _native.start_watcher(lambda reason: print(reason), 60, 60, signals)
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGHUP)
        _native.stop_watcher()
        print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)
    """)
    assert (status, output.split()) == (0, ["own", "True"])


def test_a_handler_installed_later_is_kept_when_the_watcher_stops() -> None:
    status, output = _dies("""
        import os, signal
        from deepcontext import _native
        _native.start_watcher(lambda reason: print(reason), 60, 60, [signal.SIGTERM, signal.SIGHUP])
        signal.signal(signal.SIGTERM, lambda *_: print("own"))
        _native.stop_watcher()
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGHUP)
    """)
    assert (status, output.split()) == (-signal.SIGHUP, ["own"])
