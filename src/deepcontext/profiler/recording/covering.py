"""Run each call of a decorated function under a cover, whatever kind of function it is.

A coroutine or generator runs in steps, with other code in between: its cover is called for each
step. Does not know what a cover does. Invariant: the wrapper is of the same kind as the function.
"""

from __future__ import annotations

import functools
import inspect
import types
from typing import TYPE_CHECKING, Any, Protocol

from deepcontext.errors import UserError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator


class Cover(Protocol):
    """What one call runs under."""

    def resume(self) -> None:
        """A step begins; with the first one, the call."""
        ...

    def pause(self) -> None:
        """A step ended, and more may follow."""
        ...

    def end(self, error: BaseException | None) -> None:
        """The call ended inside a step, with `error` or without."""
        ...


def cover_calls(function: Any, make_cover: Callable[[], Cover]) -> Any:
    """Return `function` with a new cover for each call.

    Raises:
        UserError: `function` is a class.
    """
    if isinstance(function, type):
        raise UserError(
            f"cannot decorate class '{function.__name__}': decorate its methods instead"
        )
    if isinstance(function, staticmethod | classmethod):
        return type(function)(cover_calls(function.__func__, make_cover))
    if inspect.iscoroutinefunction(function):
        wrap = _cover_coroutine
    elif inspect.isasyncgenfunction(function):
        wrap = _cover_asynchronous_generator
    elif inspect.isgeneratorfunction(function):
        wrap = _cover_generator
    else:
        wrap = _cover_plain
    return functools.wraps(function)(wrap(function, make_cover))


def _cover_plain(function: Any, make_cover: Callable[[], Cover]) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        cover = make_cover()
        cover.resume()
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            cover.end(error)
            raise
        cover.end(None)
        return result

    return call


def _cover_generator(function: Any, make_cover: Callable[[], Cover]) -> Any:
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        inner = function(*args, **kwargs)
        cover = make_cover()
        try:
            result = yield from _steps(inner, cover)
        except BaseException as error:
            cover.end(error)
            raise
        cover.end(None)
        return result

    return call


def _cover_coroutine(function: Any, make_cover: Callable[[], Cover]) -> Any:
    async def call(*args: Any, **kwargs: Any) -> Any:
        inner = function(*args, **kwargs)
        cover = make_cover()
        try:
            result = await _awaitable_steps(inner, cover)
        except BaseException as error:
            inner.close()  # the cover may have refused to begin
            cover.end(error)
            raise
        cover.end(None)
        return result

    return call


def _cover_asynchronous_generator(function: Any, make_cover: Callable[[], Cover]) -> Any:
    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        inner = function(*args, **kwargs)
        cover = make_cover()
        step = inner.asend(None)
        try:
            while True:
                try:
                    item = await _awaitable_steps(step, cover)
                except StopAsyncIteration:
                    break
                cover.pause()
                step = None
                try:
                    step = inner.asend((yield item))
                except GeneratorExit:
                    await _awaitable_steps(inner.aclose(), cover)
                    raise
                except BaseException as error:  # noqa: BLE001  the generator may handle it
                    step = inner.athrow(error)
        except BaseException as error:
            cover.end(error)
            raise
        cover.end(None)

    return call


def _steps(inner: Any, cover: Cover) -> Generator[Any, Any, Any]:
    """Do what ``yield from inner`` does, with the cover resumed in each step.

    The cover is not paused after the last step.
    """
    value = error = None
    while True:
        cover.resume()
        try:
            item = inner.send(value) if error is None else inner.throw(error)
        except StopIteration as end:
            return end.value
        finally:
            value = error = None  # the error's traceback leads to this frame
        cover.pause()
        try:
            value = yield item
        except GeneratorExit:
            cover.resume()
            inner.close()
            raise
        except BaseException as thrown:  # noqa: BLE001  the callee may handle it
            error = thrown


_awaitable_steps: Any = types.coroutine(_steps)
