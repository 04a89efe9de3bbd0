"""Ranges that end in any order: an event is below the scopes that are open, and no others."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.native.conftest import Recorded

    Record = Callable[..., Recorded]

_NAMES = "abcd"
_MOST_OPEN = 5
_DEEPEST_HELPER = 3

# One thread's program. `plan` says what happens: ("enter", name, helpers), ("leave", which),
# ("mark", helpers).
_PROGRAM = """
def enter_in(helpers, name):
    return enter_in(helpers - 1, name) if helpers else enter(name)
def mark_in(helpers):
    return mark_in(helpers - 1) if helpers else mark()
def run(plan):
    tokens = []
    for step in plan:
        if step[0] == "enter":
            tokens.append(enter_in(step[2], step[1]))
        elif step[0] == "leave":
            leave(tokens.pop(step[1]))
        else:
            mark_in(step[1])
threads = [threading.Thread(target=run, args=(plan,)) for plan in plans]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def _plan(source: random.Random, steps: int) -> tuple[list[tuple[object, ...]], Counter[str]]:
    """Return a plan, and how many marks it makes inside which open scopes."""
    plan: list[tuple[object, ...]] = []
    marks: Counter[str] = Counter()
    names = ""
    for _ in range(steps):
        kind = source.choice(("enter", "leave", "mark"))
        if kind == "enter" and len(names) < _MOST_OPEN:
            name = source.choice(_NAMES)
            plan.append(("enter", name, source.randrange(_DEEPEST_HELPER + 1)))
            names += name
        elif kind == "leave" and names:
            which = source.randrange(len(names))
            plan.append(("leave", which))
            names = names[:which] + names[which + 1 :]
        else:
            plan.append(("mark", source.randrange(_DEEPEST_HELPER + 1)))
            marks[names] += 1
    plan += [("leave", 0)] * len(names)
    return plan, marks


def _scopes(path: tuple[str, ...]) -> str:
    return "".join(label[1] for label in path if label.startswith("["))


@pytest.mark.parametrize("seed", range(8))
def test_scopes_of_several_threads_in_random_orders(record: Record, seed: int) -> None:
    source = random.Random(seed)
    chosen = [_plan(source, 400) for _ in range(3)]
    plans = [plan for plan, _ in chosen]
    expected: Counter[str] = sum((marks for _, marks in chosen), Counter())

    seen = record(_PROGRAM, threading=threading, plans=plans)
    marks: Counter[str] = Counter()
    for path, count in seen.events.items():
        marks[_scopes(path)] += count
        assert path[-1].startswith("mark_in:")
        # each open scope repeats the frames of one call, and its helpers
        assert len(path) <= (len(_scopes(path)) + 1) * (_DEEPEST_HELPER + 3), path
    assert marks == expected


def test_a_longer_run_makes_no_larger_tree(record: Record) -> None:
    source = """
        def run(count):
            last = None
            for i in range(count):
                token = enter("ab"[i % 2])
                if last: leave(last)
                last = token
                mark()
            leave(last)
        run(count)
    """
    short, long = (record(source, count=count) for count in (10, 1000))
    assert long.counters["nodes"] == short.counters["nodes"]
    assert {_scopes(path) for path in long.events} == {"a", "b"}
    assert sum(long.events.values()) == 1000


def test_generators_that_take_turns(record: Record) -> None:
    source = """
        def batches(count, name):
            for _ in range(count):
                token = enter(name)
                yield
                leave(token)
        def run(count):
            for _ in zip(batches(count, "a"), batches(count, "b")):
                mark()
        run(count)
    """
    short, long = (record(source, count=count) for count in (10, 1000))
    assert long.counters["nodes"] == short.counters["nodes"]
    assert {_scopes(path) for path in long.events} == {"ab", "ba"} & {
        _scopes(path) for path in short.events
    }


def test_a_scope_that_another_thread_closes(record: Record) -> None:
    seen = record(
        """
        def generate():
            token = enter("a")
            yield
            leave(token)
        for _ in range(2000):
            generator = generate()
            next(generator)
            thread = threading.Thread(target=next, args=(generator, None))
            thread.start()
            thread.join()
        mark()
        """,
        threading=threading,
    )
    assert seen.events == {("<module>:11",): 1}
    assert seen.counters["scopes_refused"] == 0


_TASKS = """
async def wait(name):
    token = enter(name)
    await event.wait()
    mark()
    leave(token)
async def work():
    for _ in range(10):
        mark()
        await asyncio.sleep(0)
    event.set()
async def main():
    await asyncio.gather(*(wait("a") for _ in range(count)), work())
event = asyncio.Event()
asyncio.run(main())
"""


def test_tasks_that_wait_inside_a_scope(record: Record) -> None:
    seen = record(_TASKS, asyncio=asyncio, count=3000)
    marks: Counter[tuple[str, str]] = Counter()
    for path, count in seen.events.items():
        marks[_scopes(path), path[-1]] += count
    assert marks == {("a", "wait:4"): 3000, ("", "work:8"): 10}
    assert seen.counters["scopes_refused"] == 0
    few = record(_TASKS, asyncio=asyncio, count=3)
    assert seen.counters["nodes"] == few.counters["nodes"]


_GREENLETS = """
def wait():
    token = enter("a")
    main.switch()
    mark()
    leave(token)
main = greenlet.getcurrent()
token = enter("m")
waiting = [greenlet.greenlet(wait) for _ in range(count)]
for one in waiting: one.switch()
mark()
for one in waiting: one.switch()
leave(token)
mark()
"""


def test_greenlets_that_wait_inside_a_scope(record: Record) -> None:
    greenlet = pytest.importorskip("greenlet")
    seen = record(_GREENLETS, greenlet=greenlet, count=700)
    marks: Counter[tuple[str, str]] = Counter()
    for path, count in seen.events.items():
        marks[_scopes(path), path[-1]] += count
    assert marks == {("a", "wait:4"): 700, ("m", "<module>:10"): 1, ("", "<module>:13"): 1}
    few = record(_GREENLETS, greenlet=greenlet, count=3)
    assert seen.counters["nodes"] == few.counters["nodes"]
