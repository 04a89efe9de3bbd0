"""Scopes as decorators, on functions of all kinds, and shared between threads."""

from __future__ import annotations

import asyncio
import contextlib
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
    assert query.name("works").total("host_time_ns") <= worked


def test_nested_coroutines() -> None:
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


async def marks(name: str, count: int) -> None:
    for _ in range(count):
        mark(name)
        await asyncio.sleep(0)


async def marks_in_block(block: str, name: str, count: int) -> None:
    with deepcontext.scope(block):
        await marks(name, count)


def test_a_block_around_an_await_covers_its_own_task_only() -> None:
    async def main() -> None:
        await asyncio.gather(
            marks_in_block("first", "first's", 3),
            marks("nobody's", 5),
            marks_in_block("second", "second's", 4),
        )

    def work() -> None:
        with deepcontext.scope("around"):
            asyncio.run(main())
        mark("after")

    assert paths(record(work)) == {
        ("around",): 1,
        ("around", "first"): 1,
        ("around", "first", "first's"): 3,
        ("around", "second"): 1,
        ("around", "second", "second's"): 4,
        ("around", "nobody's"): 5,
        ("after",): 1,
    }


def test_blocks_that_end_in_another_order_than_they_began() -> None:
    async def main() -> None:
        await asyncio.gather(*(marks_in_block(f"task {n}", "own", 9 - 2 * n) for n in range(4)))

    found = paths(record(lambda: asyncio.run(main())))
    assert {path: count for path, count in found.items() if path[-1] == "own"} == {
        (f"task {n}", "own"): 9 - 2 * n for n in range(4)
    }


def test_a_block_in_an_asynchronous_generator_covers_its_consumers_task_only() -> None:
    async def generate() -> AsyncIterator[int]:
        with deepcontext.scope("generator"):
            for number in range(3):
                mark("inside")
                yield number

    async def main() -> None:
        async def consume() -> None:
            async for _ in generate():  # as with a plain generator
                mark("consumer's")
                await asyncio.sleep(0)

        await asyncio.gather(consume(), marks("nobody's", 4))

    assert paths(record(lambda: asyncio.run(main()))) == {
        ("generator",): 1,
        ("generator", "inside"): 3,
        ("generator", "consumer's"): 3,
        ("nobody's",): 4,
    }


def test_a_block_that_a_helper_opened_lasts_until_its_task_closes_it() -> None:
    async def main() -> None:
        async def request() -> None:
            with contextlib.ExitStack() as stack:
                await open_block(stack)
                await marks("request's", 3)

        async def open_block(stack: contextlib.ExitStack) -> None:
            stack.enter_context(deepcontext.scope("request"))
            await asyncio.sleep(0)

        await asyncio.gather(request(), marks("nobody's", 6))

    assert paths(record(lambda: asyncio.run(main()))) == {
        ("request",): 1,
        ("request", "request's"): 3,
        ("nobody's",): 6,
    }


def test_samples_of_other_tasks_are_outside_a_block_that_waits() -> None:
    def busy() -> None:
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            sum(range(1000))

    async def other() -> None:
        for _ in range(15):
            busy()
            await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(marks_in_block("waits", "own", 15), other())

    part = deepcontext.profile(cpu_rate=1000, memory=False)
    with part, deepcontext.scope("around"):
        asyncio.run(main())
    assert part.result is not None
    query = part.result.query()
    sampled = query.name("*busy").total("sampled_cpu_time_ns", inclusive=True)
    around = query.under("around").name("*busy").total("sampled_cpu_time_ns", inclusive=True)
    waiting = query.under("waits").name("*busy").total("sampled_cpu_time_ns", inclusive=True)
    assert sampled > 0.1e9
    assert (around, waiting) == (sampled, 0)


def test_no_frame_of_the_interpreter_between_a_class_and_its_init() -> None:
    """CPython 3.13 and later call a class that is made often through a frame of their own."""

    class Made:
        def __init__(self) -> None:
            mark("made")

    def make() -> None:
        for _ in range(2000):
            Made()

    profile = record(make)
    (scope,) = profile.query().kind("scope").nodes()
    names = [frame.name.rpartition(".")[2] for frame in profile.path(int(scope))]
    assert names[-4:] == ["make", "__init__", "mark", "made"]
