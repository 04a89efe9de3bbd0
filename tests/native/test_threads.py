"""Threads: each records its own paths; ended ones leave what they recorded, and their memory."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from deepcontext import _native

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.native.conftest import Recorded

    Record = Callable[..., Recorded]


def test_each_thread_has_its_own_path(record: Record) -> None:
    seen = record("""
        import threading
        def work(): mark()
        def other(): mark()
        threads = [threading.Thread(target=f) for f in (work, other, work)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        mark()
    """)
    assert seen.events == {("work:2",): 2, ("other:3",): 1, ("<module>:7",): 1}


def test_threads_recording_at_once_do_not_mix(record: Record) -> None:
    seen = record("""
        import threading
        barrier = threading.Barrier(4)
        def leaf(): mark()
        def f0(): leaf()
        def f1(): leaf()
        def f2(): leaf()
        def f3(): leaf()
        def run(f):
            barrier.wait()
            for _ in range(3000): f()
        threads = [threading.Thread(target=run, args=(f,)) for f in (f0, f1, f2, f3)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    """)
    assert seen.events == {
        ("run:10", f"f{number}:{4 + number}", "leaf:3"): 3000 for number in range(4)
    }


def test_scopes_of_one_thread_are_not_anothers(record: Record) -> None:
    seen = record("""
        import threading
        def work(): mark()
        token = enter("main")
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        leave(token)
    """)
    assert seen.events == {("work:2",): 1}


def test_a_scope_left_on_another_thread_is_closed(record: Record) -> None:
    seen = record("""
        import threading
        token = enter("a")
        thread = threading.Thread(target=leave, args=(token,))
        thread.start()
        thread.join()
        mark()
        leave(token)
        mark()
    """)
    assert seen.events == {("<module>:6",): 1, ("<module>:8",): 1}


def test_reading_while_threads_record(in_subprocess: Callable[[str], str]) -> None:
    output = in_subprocess("""
        import threading
        from conftest import call_source, read, session
        stop = threading.Event()
        source = '''
            def f(n):
                if n: f(n - 1)
                mark()
            while not stop.is_set():
                f(20)
        '''
        with session():
            threads = [
                threading.Thread(target=call_source, args=(source,), kwargs={"stop": stop})
                for _ in range(3)
            ]
            for thread in threads:
                thread.start()
            last = 0
            while last < 20_000:
                seen = read()
                now = sum(seen.events.values())
                assert now >= last, (now, last)
                assert all(path[0] == "<module>:5" for path in seen.events), seen.events
                last = now
            stop.set()
            for thread in threads:
                thread.join()
        print(len(read().events))
    """)
    assert output.split() == ["21"]


def test_five_thousand_short_threads(in_subprocess: Callable[[str], str]) -> None:
    output = in_subprocess("""
        import threading
        from conftest import call_source, read, session
        source = '''
            import threading
            def work(): mark()
            for _ in range(2500):
                pair = [threading.Thread(target=work) for _ in range(2)]
                for thread in pair: thread.start()
                for thread in pair: thread.join()
        '''
        with session():
            call_source(source)
        seen = read()
        print(seen.events["work:2",], seen.counters["threads"], seen.counters["nodes"])
    """)
    events, threads, nodes = map(int, output.split())
    assert events == 5000
    # As many as lived at once, and the main thread. From CPython 3.14, join() returns a moment before
    # a thread is gone.
    assert threads <= 50
    assert nodes < 14 * threads


def test_threads_that_begin_before_the_session(record: Record) -> None:
    go, done = threading.Event(), threading.Event()

    def early() -> None:
        go.wait()
        _native.count_event("early")
        done.set()

    thread = threading.Thread(target=early)
    thread.start()
    seen = record("go.set()\ndone.wait()", go=go, done=done)
    thread.join()
    assert sum(seen.events.values()) == 1


def test_a_threads_given_name_reaches_its_frame() -> None:
    _native.begin(1000)
    done = threading.Event()
    ready = threading.Event()

    def work() -> None:
        _native.count_event("here")
        ready.set()
        done.wait()

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    assert thread.ident is not None
    reading = _native.read_tree([(thread.ident, "Thread-ö (work)")])
    done.set()
    thread.join()
    _native.end()
    assert "Thread-ö (work)" in reading.frame_columns()["strings"]


def test_a_thread_name_cut_inside_a_character(in_subprocess: Callable[[str], str]) -> None:
    # The kernel keeps 15 bytes.
    output = in_subprocess("""
        import ctypes
        import threading
        from conftest import read, session
        from deepcontext import _native
        def work():
            ctypes.CDLL(None).prctl(15, "fourteen bytesö".encode(), 0, 0, 0)
            _native.count_event("here")
        with session():
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        print(ascii(sorted(read().threads)))
    """)
    assert output.strip() == ascii(["fourteen bytes�"])
