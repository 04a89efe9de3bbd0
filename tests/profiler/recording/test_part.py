"""`deepcontext.profile` on functions of all kinds."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import deepcontext
from deepcontext import Profile, errors

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    yield
    assert deepcontext._MANAGER.session is None


def scopes(path: str) -> dict[str, int]:
    profile = Profile.load(path)
    rows = profile.query().kind("scope").table("call_duration_ns", by="name")
    return {row.key: row.count for row in rows}


def mark(name: str) -> None:
    with deepcontext.scope(name):
        pass


def test_a_bare_decorator_writes_a_file_named_after_the_function() -> None:
    @deepcontext.profile
    def train(name: str) -> int:
        mark(name)
        return 7

    assert train("inside") == 7
    mark("outside")
    assert scopes("train.dcprof") == {"inside": 1}


def test_a_decorator_call_without_a_path_writes_the_same_file() -> None:
    @deepcontext.profile()
    def train() -> None:
        mark("inside")

    train()
    assert scopes("train.dcprof") == {"inside": 1}


def test_a_coroutine_is_profiled_to_its_end() -> None:
    @deepcontext.profile("out.dcprof")
    async def main() -> str:
        mark("before")
        await asyncio.sleep(0.01)
        mark("after")
        return "done"

    assert asyncio.run(main()) == "done"
    assert scopes("out.dcprof") == {"before": 1, "after": 1}


def test_a_coroutine_that_fails() -> None:
    @deepcontext.profile("out.dcprof")
    async def main() -> None:
        await asyncio.sleep(0)
        raise KeyError("of the program")

    with pytest.raises(KeyError):
        asyncio.run(main())
    assert Profile.load("out.dcprof").run.exit_reason == "exception: KeyError"


def test_a_generator_is_profiled_from_its_first_item_to_its_end() -> None:
    @deepcontext.profile("out.dcprof")
    def batches() -> Iterator[int]:
        for number in range(2):
            mark("made")
            yield number

    made = batches()
    mark("too early")
    for _ in made:
        mark("used")
    assert scopes("out.dcprof") == {"made": 2, "used": 2}


def test_a_generator_that_is_deleted_half_way() -> None:
    @deepcontext.profile("out.dcprof")
    def batches() -> Iterator[int]:
        yield 1
        yield 2

    made = batches()
    next(made)
    del made
    assert Profile.load("out.dcprof").run.exit_reason == "exit"


def test_an_asynchronous_generator() -> None:
    @deepcontext.profile("out.dcprof")
    async def batches() -> AsyncIterator[int]:
        for number in range(2):
            await asyncio.sleep(0)
            mark("made")
            yield number

    async def main() -> list[int]:
        return [number async for number in batches()]

    assert asyncio.run(main()) == [0, 1]
    assert scopes("out.dcprof") == {"made": 2}


def test_a_recursive_function_is_one_session() -> None:
    @deepcontext.profile("out.dcprof")
    def descend(depth: int) -> int:
        mark("level")
        return depth and 1 + descend(depth - 1)

    assert descend(3) == 3
    assert scopes("out.dcprof") == {"level": 4}


def test_calls_that_overlap_are_one_session() -> None:
    everybody_is_in = threading.Barrier(3)

    @deepcontext.profile("out.dcprof")
    def work(wait_s: float) -> None:
        everybody_is_in.wait(20)
        time.sleep(wait_s)
        mark("end")

    threads = [threading.Thread(target=work, args=(n / 50,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert scopes("out.dcprof") == {"end": 3}

    @deepcontext.profile("tasks.dcprof")
    async def request(wait_s: float) -> None:
        await asyncio.sleep(wait_s)
        mark("end")

    async def main() -> None:
        await asyncio.gather(*(request(n / 50) for n in range(3)))

    asyncio.run(main())
    assert scopes("tasks.dcprof") == {"end": 3}


def test_the_error_names_another_running_session() -> None:
    @deepcontext.profile("inner.dcprof")
    async def inner() -> None:
        raise AssertionError("ran")

    with (
        deepcontext.profile("outer.dcprof"),
        pytest.raises(errors.SessionError, match=r"already running and writes to .*outer"),
    ):
        asyncio.run(inner())


def test_a_target_that_cannot_be_profiled_is_refused_at_once() -> None:
    with pytest.raises(errors.UserError, match="class 'Model'"):

        @deepcontext.profile
        class Model:
            pass

    with pytest.raises(TypeError, match="shape"):
        deepcontext.profile(shape=True)  # type: ignore[call-overload]


def test_static_methods() -> None:
    class Model:
        @deepcontext.profile
        @staticmethod
        def run(x: int) -> Any:
            mark("run")
            return x

    assert Model().run(3) == 3
    assert scopes("run.dcprof") == {"run": 1}
