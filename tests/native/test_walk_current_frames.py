"""The raw walk sees the frames that the interpreter itself reports, at the same instructions."""

from __future__ import annotations

import gc
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext import _native

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from types import CodeType, FrameType

    from _typeshed import TraceFunction


def _expected() -> list[tuple[CodeType, int]]:
    frames = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        frames.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return frames


def _check() -> int:
    """Compare both walks; return the number of frames.

    The two calls are different instructions of this frame, so the offset in it is left out.
    """
    seen, expected = _native.walk_current_frames(), _expected()
    assert [code for code, _ in seen] == [code for code, _ in expected]
    assert seen[1:] == expected[1:]
    own = [line for start, end, line in _check.__code__.co_lines() if start <= seen[0][1] < end]
    assert own == [_check.__code__.co_firstlineno + 5]
    return len(seen)


def test_plain_calls() -> None:
    def one_more() -> int:
        return _check()

    assert one_more() == _check() + 1


def test_recursion() -> None:
    def deeper(left: int) -> int:
        return deeper(left - 1) if left else _check()

    assert deeper(500) == deeper(0) + 500


def test_generators_and_what_they_delegate_to() -> None:
    def inner() -> Iterator[int]:
        yield _check()
        yield _check()

    def outer() -> Iterator[int]:
        yield _check()
        yield from inner()

    first, second, third = outer()
    assert second == third == first + 1


def test_coroutines() -> None:
    async def numbers() -> AsyncIterator[int]:
        yield _check()

    async def inner() -> int:
        return _check()

    async def outer() -> list[int]:
        return [await inner(), *[number async for number in numbers()]]

    with pytest.raises(StopIteration) as result:
        outer().send(None)
    assert len(result.value.value) == 2


def test_calls_through_c() -> None:
    class Odd:
        def __init__(self) -> None:
            self.depth = _check()

        def __lt__(self, other: object) -> bool:
            return _check() > 0

        def __getattr__(self, name: str) -> int:
            return _check()

        def __del__(self) -> None:
            _check()

    odd = Odd()
    sorted([odd, Odd()])
    assert odd.absent == odd.depth
    assert list(map(lambda _: _check(), range(2)))  # noqa: C417  a call through C is the point
    assert eval("_check()") == odd.depth
    exec("class Body: _check()")
    del odd


def test_finalizers_during_garbage_collection() -> None:
    depths = []

    class Cycle:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            depths.append(_check())

    def run() -> None:
        Cycle()
        gc.collect()

    run()
    assert len(depths) == 1


def test_on_a_thread() -> None:
    depths: list[int] = []
    thread = threading.Thread(target=lambda: depths.append(_check()))
    thread.start()
    thread.join()
    assert depths == [5]  # _bootstrap, _bootstrap_inner, run, the lambda, _check


def test_under_a_trace_function() -> None:
    lines: list[int] = []

    def trace(frame: FrameType, event: str, argument: Any) -> TraceFunction:
        lines.append(_check())
        return trace

    def traced() -> int:
        return _check()

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        depth = traced()
    finally:
        sys.settrace(before)
    assert depth > 0
    assert len(lines) > 2


def test_while_another_thread_runs() -> None:
    done = threading.Event()

    def busy() -> None:
        def recurse(left: int) -> None:
            if left:
                recurse(left - 1)

        while not done.is_set():
            recurse(50)

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        check: Callable[[], int] = _check
        assert len({check() for _ in range(3000)}) == 1
    finally:
        done.set()
        thread.join()
