"""Named parts of the program, each a frame of the tree."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Self, TypeVar

from deepcontext import _native
from deepcontext.profiler.recording.covering import cover_calls

if TYPE_CHECKING:
    from collections.abc import Callable

Function = TypeVar("Function", bound="Callable[..., Any]")


class Scope:
    """A named part of the program: a block (``with``) or all calls of a function (decorator).

    Does nothing while no session runs. A decorated coroutine or generator is inside its scope while
    it runs, and not while it is suspended.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._tokens: dict[int, list[int]] = {}  # of open blocks, by thread

    def __enter__(self) -> Self:
        tokens = self._tokens.setdefault(threading.get_ident(), [])
        tokens.append(_native.enter_scope(self._name))
        return self

    def __exit__(self, *exception: object) -> None:
        thread = threading.get_ident()
        if thread not in self._tokens:  # closed by another thread than the one that opened it
            thread = next(reversed(tuple(self._tokens)), thread)
        tokens = self._tokens.get(thread)
        if tokens:
            _native.leave_scope(tokens.pop())
        if not tokens:
            self._tokens.pop(thread, None)

    def __call__(self, function: Function) -> Function:
        """Decorate a function."""
        covered: Function = cover_calls(function, lambda: _Call(self._name))
        return covered


class _Call:
    """One call of a decorated function."""

    __slots__ = ("_name", "_ticks", "_token")

    def __init__(self, name: str) -> None:
        self._name = name
        self._token = 0
        self._ticks = 0  # in the steps before this one

    def resume(self) -> None:
        self._token = _native.enter_scope(self._name)

    def pause(self) -> None:
        self._ticks += _native.pause_scope(self._token)

    def end(self, error: BaseException | None) -> None:
        del error
        _native.leave_scope(self._token, self._ticks)
