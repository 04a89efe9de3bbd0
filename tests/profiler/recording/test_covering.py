"""A covered function behaves as without a cover, and the cover is called around each step."""

from __future__ import annotations

import asyncio
import inspect
import types
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.errors import UserError
from deepcontext.profiler.recording.covering import cover_calls

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator


class Log:
    """A cover that records its calls."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def resume(self) -> None:
        self.events.append("resume")

    def pause(self) -> None:
        self.events.append("pause")

    def end(self, error: BaseException | None) -> None:
        self.events.append(f"end {type(error).__name__}")


def plain(x: int) -> int:
    return 1 // x


async def coroutine(x: int) -> int:
    await asyncio.sleep(0)
    return 1 // x


def generator(x: int) -> Generator[Any, Any, Any]:
    received: list[Any] = []
    try:
        while True:
            received.append((yield len(received)))
            if received[-1] == "stop":
                return received
    except KeyError:
        yield "caught"
        return 1 // x
    finally:
        received.append("closed")


async def asynchronous_generator(x: int) -> AsyncGenerator[Any, Any]:
    try:
        while True:
            await asyncio.sleep(0)
            if (yield x) == "stop":
                return
    except KeyError:
        await asyncio.sleep(0)
        yield "caught"
        yield 1 // x


@pytest.mark.parametrize(
    ("function", "is_kind"),
    [
        (coroutine, inspect.iscoroutinefunction),
        (generator, inspect.isgeneratorfunction),
        (asynchronous_generator, inspect.isasyncgenfunction),
    ],
)
def test_the_kind_of_a_function_is_preserved(function: Any, is_kind: Callable[[Any], bool]) -> None:
    covered = cover_calls(function, Log)
    assert is_kind(covered)
    assert covered.__name__ == function.__name__
    assert inspect.signature(covered) == inspect.signature(function)


@pytest.mark.parametrize(("argument", "end"), [(1, "end NoneType"), (0, "end ZeroDivisionError")])
def test_a_plain_function(argument: int, end: str) -> None:
    log = Log()
    assert _result(lambda: cover_calls(plain, lambda: log)(argument)) == _result(
        lambda: plain(argument)
    )
    assert log.events == ["resume", end]


@pytest.mark.parametrize(("argument", "end"), [(1, "end NoneType"), (0, "end ZeroDivisionError")])
def test_a_coroutine(argument: int, end: str) -> None:
    log = Log()
    covered = cover_calls(coroutine, lambda: log)
    assert _result(lambda: asyncio.run(covered(argument))) == _result(
        lambda: asyncio.run(coroutine(argument))
    )
    assert log.events == ["resume", "pause", "resume", end]


def test_a_coroutine_that_is_cancelled() -> None:
    log = Log()

    async def wait() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            return "cleaned up"
        return ""

    async def main() -> str:
        task = asyncio.create_task(cover_calls(wait, lambda: log)())
        await asyncio.sleep(0)
        task.cancel()
        return str(await task)

    assert asyncio.run(main()) == "cleaned up"
    assert log.events == ["resume", "pause"] * 2 + ["resume", "end NoneType"]


def test_a_coroutine_that_is_closed() -> None:
    log = Log()
    steps = cover_calls(coroutine, lambda: log)(1)
    steps.send(None)
    steps.close()
    assert log.events == ["resume", "pause", "resume", "end GeneratorExit"]


def test_a_coroutine_whose_cover_fails_gives_no_never_awaited_warning() -> None:
    class Refusing(Log):
        def resume(self) -> None:
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        asyncio.run(cover_calls(coroutine, Refusing)(1))  # and no "was never awaited"


ACTIONS: dict[str, list[tuple[str, Any]]] = {
    "send": [("send", None), ("send", "a"), ("send", "b"), ("send", "stop")],
    "throw": [("send", None), ("throw", KeyError), ("send", None)],
    "throw what it does not catch": [("send", None), ("throw", ValueError)],
    "throw before it began": [("throw", ValueError)],
    "close": [("send", None), ("close", None), ("send", None)],
    "close before it began": [("close", None)],
}


@pytest.mark.parametrize("actions", ACTIONS.values(), ids=ACTIONS)
@pytest.mark.parametrize("argument", [0, 1])
def test_a_generator(actions: list[tuple[str, Any]], argument: int) -> None:
    def drive(made: Any) -> list[Any]:
        return [
            _result(lambda name=name, value=value: _act(made, name, value))  # type: ignore[misc]
            for name, value in actions
        ]

    log = Log()
    covered = cover_calls(generator, lambda: log)
    assert drive(covered(argument)) == drive(generator(argument))
    assert log.events.count("resume") == log.events.count("pause") + any(
        event.startswith("end") for event in log.events
    )


@pytest.mark.parametrize("actions", ACTIONS.values(), ids=ACTIONS)
@pytest.mark.parametrize("argument", [0, 1])
def test_an_asynchronous_generator(actions: list[tuple[str, Any]], argument: int) -> None:
    async def drive(made: Any) -> list[Any]:
        results = []
        for name, value in actions:
            try:
                results.append(await _act(made, f"a{name}", value))
            except Exception as error:  # noqa: BLE001
                results.append(repr(error))
        return results

    log = Log()
    covered = cover_calls(asynchronous_generator, lambda: log)
    assert asyncio.run(drive(covered(argument))) == asyncio.run(
        drive(asynchronous_generator(argument))
    )
    assert log.events.count("resume") == log.events.count("pause") + any(
        event.startswith("end") for event in log.events
    )


def _act(made: Any, name: str, value: Any) -> Any:
    return getattr(made, name)(*([] if name.endswith("close") else [value]))


def _result(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except Exception as error:  # noqa: BLE001
        return repr(error)


def test_methods() -> None:
    class Model:
        def method(self, x: int) -> int:
            return x + 1

        static = cover_calls(staticmethod(plain), Log)
        bound = cover_calls(classmethod(lambda cls, x: (cls.__name__, x)), Log)
        method = cover_calls(method, Log)

    assert (Model().method(1), Model.static(1), Model.bound(2)) == (2, 1, ("Model", 2))


def test_a_class_is_refused() -> None:
    with pytest.raises(UserError, match="cannot decorate class 'Log': decorate its methods"):
        cover_calls(Log, Log)


def test_a_generator_based_coroutine() -> None:
    @types.coroutine
    def old() -> Generator[Any, Any, int]:
        yield
        return 4

    async def main() -> int:
        return int(await old())

    log = Log()
    assert asyncio.run(cover_calls(main, lambda: log)()) == 4
    assert log.events == ["resume", "pause", "resume", "end NoneType"]
