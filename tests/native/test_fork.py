"""Forks: the child records nothing, waits for no one, and may begin a session of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_child_records_nothing_and_the_parent_goes_on(
    in_subprocess: Callable[[str], str],
) -> None:
    output = in_subprocess("""
        import os
        from conftest import call_source, read, session
        from deepcontext import _native
        with session():
            call_source("mark()")
            child = os.fork()
            if child == 0:
                assert not _native.is_recording()
                call_source("mark()")
                token = _native.enter_scope("child")
                _native.leave_scope(token)
                os._exit(7 if sum(read().events.values()) == 1 else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
            call_source("mark()")
        print(sum(read().events.values()))
    """)
    assert int(output) == 2


def test_a_child_may_begin_a_session_of_its_own(in_subprocess: Callable[[str], str]) -> None:
    output = in_subprocess("""
        import os
        import threading
        from conftest import call_source, read, session
        with session():
            call_source("mark()")
            child = os.fork()
            if child == 0:
                with session():
                    call_source("mark(); mark()")
                    thread = threading.Thread(target=call_source, args=("mark()",))
                    thread.start()
                    thread.join()
                seen = read()
                os._exit(7 if sum(seen.events.values()) == 3 else 1)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """)
    assert int(output) == 7


@pytest.mark.long
def test_forks_while_threads_read_the_tree(in_subprocess: Callable[[str], str]) -> None:
    # Readers hold the tables' locks without the GIL; the child frees code, which needs one of them.
    output = in_subprocess("""
        import gc
        import os
        import signal
        import threading
        from conftest import session
        from deepcontext import _native

        def make(name):
            space = {"mark": _native.count_event}
            exec(compile(f"def {name}(): mark('m')", f"{name}.py", "exec"), space)
            return space[name]

        def work():
            while not done.is_set():
                _native.read_tree(())

        done = threading.Event()
        with session():
            kept = [make(f"kept{n}") for n in range(3000)]
            for function in kept:
                function()
            threads = [threading.Thread(target=work) for n in range(2)]
            for thread in threads:
                thread.start()
            statuses = set()
            for _ in range(40):
                child = os.fork()
                if child == 0:
                    signal.alarm(20)  # a deadlock kills
                    kept.clear()
                    gc.collect()
                    make("child")()
                    os._exit(7)
                statuses.add(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            done.set()
            for thread in threads:
                thread.join()
        print(statuses)
    """)
    assert output.strip() == "{7}"


def test_a_fork_that_python_does_not_know_of(in_subprocess: Callable[[str], str]) -> None:
    output = in_subprocess("""
        import ctypes
        import os
        import signal
        from conftest import call_source, session
        from deepcontext import _native
        with session():
            _native.start_watcher(lambda: None, 60.0, 60.0)
            child = ctypes.PyDLL(None).fork()
            if child == 0:
                call_source("mark()")
                assert not _native.is_recording()
                _native.stop_watcher()
                _native.start_watcher(lambda: None, 60.0, 60.0)
                _native.stop_watcher()
                os._exit(7)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            child = ctypes.PyDLL(None).fork()
            if child == 0:
                os.kill(os.getpid(), signal.SIGTERM)  # dies of it, as without the profiler
                signal.pause()
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            _native.stop_watcher()
    """)
    assert output.split() == ["7", "-15"]


def test_threads_that_fork_at_once_while_sessions_begin_and_end(
    in_subprocess: Callable[[str], str],
) -> None:
    # Each fork waits for the watcher's callback, and gives the lock away while it does.
    output = in_subprocess("""
        import os
        import threading
        import time
        import warnings
        from pathlib import Path
        from deepcontext import _native

        warnings.simplefilter("ignore")
        os.register_at_fork(
            before=_native.pause_watcher, after_in_parent=_native.resume_watcher
        )

        def write():
            time.sleep(0.005)

        def fork_again_and_again():
            while not done.is_set():
                child = os.fork()
                if child == 0:
                    os._exit(7)
                statuses.add(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

        def name_of(folder):
            try:
                return (folder / "comm").read_text().strip()
            except OSError:  # the thread has ended meanwhile
                return ""

        def internal_threads():
            folders = list(Path("/proc/self/task").iterdir())
            return sum(name_of(folder) == "deepcontext" for folder in folders)

        done = threading.Event()
        statuses = set()
        threads = [threading.Thread(target=fork_again_and_again) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(60):
            _native.start_watcher(write, 0.001, 0.001)
            time.sleep(0.01)
            _native.stop_watcher()
        done.set()
        for thread in threads:
            thread.join()
        end = time.monotonic() + 60
        while internal_threads() and time.monotonic() < end:
            time.sleep(0.01)
        print(statuses, internal_threads())
    """)
    assert output.strip() == "{7} 0"
