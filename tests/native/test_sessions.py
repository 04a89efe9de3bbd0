"""Sessions follow one another without leaving anything of the last one."""

from __future__ import annotations

import os
import resource
from typing import TYPE_CHECKING

import pytest

from deepcontext import _native

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.native.conftest import Recorded

    Record = Callable[..., Recorded]


_SESSIONS = """
    import gc
    from conftest import call_source, read, session
    from deepcontext import _native

    def once(number):
        with session():
            assert _native.is_recording()
            call_source(f'''
                import threading
                def f{number % 10}(n):
                    if n: f{number % 10}(n - 1)
                    mark()
                f{number % 10}(30)
                thread = threading.Thread(target=f{number % 10}, args=(0,))
                thread.start()
                thread.join()
            ''')
        assert not _native.is_recording()
        seen = read()
        assert sum(seen.events.values()) == 32, seen.events
        assert seen.counters["threads"] == 2
        assert all(path[-1] == f"f{number % 10}:4" for path in seen.events)
        return seen.counters["nodes"]

"""


def test_two_hundred_sessions_are_alike(in_subprocess: Callable[[str], str]) -> None:
    output = in_subprocess(
        _SESSIONS
        + """
    once(0)  # the interpreter specialises calls at first
    print(len({once(number) for number in range(200)}))
    """
    )
    assert int(output) == 1


@pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""), reason="ASan keeps what was freed for a while"
)
def test_two_hundred_sessions_need_no_more_memory_than_twenty(
    in_subprocess: Callable[[str], str],
) -> None:
    output = in_subprocess(
        _SESSIONS
        + """
    def resident_pages():
        gc.collect()
        return int(open("/proc/self/statm").read().split()[1])

    for number in range(20):
        once(number)
    before = resident_pages()
    for number in range(200):
        once(number)
    print(resident_pages() - before)
    """
    )
    assert int(output) * resource.getpagesize() < 2_000_000


def test_the_last_session_can_be_read_after_its_end(record: Record) -> None:
    seen = record("mark()")
    assert len(_native.read_tree(()).node_columns(b"")["phase"]) > 1
    assert seen.events == {("<module>:1",): 1}


def test_events_between_sessions_are_not_recorded(record: Record) -> None:
    _native.count_event("between")
    assert _native.enter_scope("between") == 0
    seen = record("mark()")
    assert seen.events == {("<module>:1",): 1}
    _native.count_event("after")
    assert "after" not in _native.read_tree(()).frame_columns()["strings"]


def test_columns_fit_together(record: Record) -> None:
    record("def f(): mark()\nf()")
    reading = _native.read_tree(())
    frames, nodes = reading.frame_columns(), reading.node_columns(b"")
    count = len(nodes["phase"])
    assert len(nodes["parent"]) == len(nodes["subtree_end"]) == 4 * count
    assert len(nodes["frame"]) == 4 * count
    assert len(nodes["phase"]) == count
    assert len(frames["name"]) == len(frames["file"]) == 4 * len(frames["kind"])
    assert max(frames["kind"]) < 255  # links are resolved


def test_watching_code_twice_and_unwatching_twice_does_no_harm() -> None:
    assert _native.watch_code() == ""
    assert _native.watch_code() == ""
    _native.unwatch_code()
    _native.unwatch_code()
