"""Scopes as decorators, on functions of all kinds, and shared between threads."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING

import deepcontext
from deepcontext import Profile

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator


def record(work: Callable[[], object]) -> Profile:
    part = deepcontext.profile()
    with part:
        work()
    assert part.result is not None
    return part.result


def paths(profile: Profile) -> dict[tuple[str, ...], int]:
    """Return the scopes on the path of each scope, with its number of calls."""
    found: dict[tuple[str, ...], int] = {}
    rows = profile.metrics["call_duration_ns"]
    counts = dict(zip(rows.node.tolist(), rows.count.tolist(), strict=True))
    for node in profile.query().kind("scope").nodes():
        names = [frame.name for frame in profile.path(int(node)) if frame.kind.name == "SCOPE"]
        found[tuple(names)] = found.get(tuple(names), 0) + counts.get(int(node), 0)
    return found


def mark(name: str) -> None:
    with deepcontext.scope(name):
        pass


def test_a_function_decorated_before_the_session_starts() -> None:
    @deepcontext.scope("evaluate")
    def evaluate() -> int:
        mark("inside")
        return 3

    assert evaluate() == 3
    profile = record(lambda: (evaluate(), evaluate()))
    assert paths(profile) == {("evaluate",): 2, ("evaluate", "inside"): 2}


def test_a_coroutine_is_inside_its_scope_only_while_it_runs() -> None:
    @deepcontext.scope("request")
    async def request() -> None:
        for _ in range(3):
            mark("request's")
            await asyncio.sleep(0)

    async def other() -> None:
        for _ in range(3):
            mark("other's")
            await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(request(), other(), request())

    profile = record(lambda: asyncio.run(main()))
    assert paths(profile) == {
        ("request",): 2,
        ("request", "request's"): 6,
        ("other's",): 3,
    }


def test_the_duration_of_a_coroutine_is_that_of_its_steps() -> None:
    @deepcontext.scope("waits")
    async def waits() -> None:
        for _ in range(2):
            await asyncio.sleep(0.2)

    @deepcontext.scope("works")
    async def works() -> None:
        for _ in range(2):
            time.sleep(0.2)  # noqa: ASYNC251  it is the work
            await asyncio.sleep(0)

    async def main() -> None:
        await waits()
        await works()

    profile = record(lambda: asyncio.run(main()))
    query = profile.query().kind("scope")
    waited = query.name("waits").total("call_duration_ns")
    worked = query.name("works").total("call_duration_ns")
    assert worked >= 0.4e9
    assert waited < worked / 2
    assert query.name("works").total("cpu_time_ns") <= worked


def test_coroutines_inside_each_other() -> None:
    @deepcontext.scope("inner")
    async def inner() -> None:
        await asyncio.sleep(0)
        mark("leaf")

    @deepcontext.scope("outer")
    async def outer() -> None:
        await inner()

    profile = record(lambda: asyncio.run(outer()))
    assert paths(profile) == {
        ("outer",): 1,
        ("outer", "inner"): 1,
        ("outer", "inner", "leaf"): 1,
    }


def test_a_generator_is_inside_its_scope_only_while_it_runs() -> None:
    @deepcontext.scope("produce")
    def batches() -> Iterator[int]:
        for number in range(2):
            mark("made")
            yield number

    def consume() -> None:
        for _ in batches():
            mark("used")

    assert paths(record(consume)) == {("produce",): 1, ("produce", "made"): 2, ("used",): 2}


def test_an_asynchronous_generator_is_inside_its_scope_only_while_it_runs() -> None:
    @deepcontext.scope("produce")
    async def batches() -> AsyncIterator[int]:
        for number in range(2):
            await asyncio.sleep(0)
            mark("made")
            yield number

    async def consume() -> None:
        async for _ in batches():
            mark("used")

    assert paths(record(lambda: asyncio.run(consume()))) == {
        ("produce",): 1,
        ("produce", "made"): 2,
        ("used",): 2,
    }


def test_one_scope_object_on_several_threads() -> None:
    shared = deepcontext.scope("shared")
    first_is_in, second_is_in = threading.Event(), threading.Event()

    def first() -> None:
        with shared:
            first_is_in.set()
            second_is_in.wait(20)
        mark("after")

    def second() -> None:
        first_is_in.wait(20)
        with shared:
            second_is_in.set()
            thread.join()
        mark("after")

    thread = threading.Thread(target=first)
    thread.start()
    profile = record(second)  # `first` entered before or after the start
    assert paths(profile)[("after",)] == 2
