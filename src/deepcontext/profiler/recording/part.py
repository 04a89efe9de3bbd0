"""A session around a part of the program: a block, or the calls of a function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from deepcontext.profiler.recording.covering import cover_calls

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.recording.session import Session

    Path = str | os.PathLike[str] | None

Function = TypeVar("Function", bound="Callable[..., Any]")
Result = TypeVar("Result")


class ProfiledPart:
    """Profiles a block (``with``) or each call of a function (decorator)."""

    def __init__(
        self,
        path: Path,
        load: Callable[[], Callable[[Path], Session]],
        stop: Callable[[str], Callable[[], Profile]],
    ) -> None:
        """Remember how to start and stop.

        Args:
            path: file to write to; None keeps the profile of a block in memory and writes that of a
                function to ``FUNCTION.dcprof`` in the current folder.
            load: imports what a session needs; returns what starts the process's session.
            stop: stops the session; called with the reason why it ends; returns what reads the profile.
        """
        self.result: Profile | None = None
        self._path = path
        self._load = load
        self._stop = stop
        self._calls = 0  # under way

    def __enter__(self) -> Session:
        return self._load()(self._path)

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        self.result = self._stop(_reason(kind))()

    def __call__(self, function: Function) -> Function:
        """Decorate a function: each call is a session; overlapping calls share one."""
        path = self._path
        if path is None:
            name = getattr(function, "__name__", type(function).__name__).strip("<>")
            path = f"{name}.dcprof"
        covered: Function = cover_calls(function, lambda: _Call(self, path))
        return covered

    def _begin_call(self, path: Path) -> None:
        start = self._load()  # because operations import nothing

        def begin() -> None:
            if not self._calls:
                start(path)
            self._calls += 1

        _operation(begin)  # and not under a lock, which a signal handler's call would wait for

    def _end_call(self, error: BaseException | None) -> None:
        def end() -> Callable[[], Profile] | None:
            self._calls -= 1
            return (
                None if self._calls else self._stop(_reason(None if error is None else type(error)))
            )

        read = _operation(end)
        if read is not None:
            self.result = read()


def _operation(work: Callable[[], Result]) -> Result:
    from deepcontext.profiler.recording import operations  # noqa: PLC0415  the native core

    return operations.run(work)


def _reason(kind: type[BaseException] | None) -> str:
    return "exit" if kind is None else f"exception: {kind.__name__}"


class _Call:
    """One call of a decorated function, from its first step to its last."""

    def __init__(self, part: ProfiledPart, path: Path) -> None:
        self._part = part
        self._path = path
        self._has_begun = False

    def resume(self) -> None:
        if not self._has_begun:
            self._part._begin_call(self._path)  # noqa: SLF001  one concept in two classes
            self._has_begun = True

    def pause(self) -> None:
        """Do nothing: other work of the program belongs to the session, too."""

    def end(self, error: BaseException | None) -> None:
        if self._has_begun:
            # A generator that is closed early has not failed.
            is_closed = isinstance(error, GeneratorExit)
            self._part._end_call(None if is_closed else error)  # noqa: SLF001
