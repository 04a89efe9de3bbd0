"""`deepcontext.start` and `deepcontext.profile`: begin a session with options given as keywords.

Part of the facade; a separate file, so that a program that only marks its scopes does not load the
options. `profiler/recording/options.py` declares the keywords.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar, overload

import deepcontext
from deepcontext.profiler.recording.option_rules import Flag
from deepcontext.profiler.recording.options import SessionOptions, checked
from deepcontext.profiler.recording.part import ProfiledPart
from deepcontext.profiler.recording.shown_options import shows_options

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Unpack

    from deepcontext.profiler.recording.options import OptionValues
    from deepcontext.profiler.recording.session import Session

_Function = TypeVar("_Function", bound="Callable[..., Any]")


@shows_options
def start(
    path: str | os.PathLike[str] | None = None,
    *,
    force: bool = False,
    **options: Unpack[OptionValues],
) -> Session:
    """Start profiling this process, on all its threads.

    Args:
        path: file to write to, where an older profile is replaced; None keeps the profile in
            memory until `stop` returns it.
        force: replace the file at `path` even if it is not a profile.
        options: the options of the session.

    Raises:
        SessionError: when a session is running already.
        UserError: when `path` cannot be written or is a file that is not a profile, or a value of an
            option is not allowed.
        EnvironmentProblem: when the machine fails to write `path`, for example on a full disk.
    """
    return _starter(options, force=force)()(path)


@overload
def profile(path: _Function) -> _Function: ...


@overload
def profile(
    path: str | os.PathLike[str] | None = None,
    *,
    force: bool = False,
    **options: Unpack[OptionValues],
) -> ProfiledPart: ...


@shows_options
def profile(path: Any = None, *, force: bool = False, **options: Any) -> Any:
    """Profile a block or the calls of a function.

    ``with profile("out.dcprof") as session:`` takes the arguments of `start`; after the block, the
    object that `profile` returned holds the Profile in `result`.

    ``@profile`` and ``@profile("out.dcprof", ...)`` profile each call of a function from its
    beginning to its end, also of a coroutine or a generator. Calls that overlap are one session. The
    file holds the last session; without a path it is ``FUNCTION.dcprof`` in the current folder.

    Raises:
        UserError: when a class is decorated, or a value of an option is not allowed.
    """
    is_bare = _is_function(path)
    part = ProfiledPart(None if is_bare else path, _starter(options, force=force), deepcontext._end)  # noqa: SLF001  part of the facade
    return part(path) if is_bare else part


def _is_function(value: object) -> bool:
    if isinstance(value, staticmethod | classmethod):
        return True
    return callable(value) and not isinstance(value, os.PathLike)


def _starter(
    options: Mapping[str, Any], *, force: bool
) -> Callable[[], Callable[[str | os.PathLike[str] | None], Session]]:
    """Check the arguments of a session; return a function that loads the recorder and returns its start."""
    wanted = SessionOptions.of(options)
    forced = checked("force", Flag(), force)

    def load() -> Callable[[str | os.PathLike[str] | None], Session]:
        manager = deepcontext._manager()  # noqa: SLF001  part of the facade
        try:
            from deepcontext.collectors import ALL  # noqa: PLC0415  the native core
        except ImportError as error:
            deepcontext._explain(error)  # noqa: SLF001  part of the facade
            raise

        return lambda path: manager.start(path, wanted, ALL, force=forced)

    return load
