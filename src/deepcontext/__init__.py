"""deepcontext: one bounded calling context tree through every layer of a deep-learning program.

    import deepcontext

    with deepcontext.profile("out.dcprof") as session:
        for batch in loader:
            train_step(batch)
            session.step()

    profile = deepcontext.Profile.load("out.dcprof")
    print(profile.query().kind("operator").phase("backward").total("host_time_ns"))

Importing this package imports no framework, no numpy and no user interface: it runs inside the
program under test. The native core is loaded when it is first needed, so that `deepcontext doctor`
can say why it cannot be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext import errors, native_core

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext.native_core import EmptyScope
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.recording.scope import Scope
    from deepcontext.profiler.recording.session import Session
    from deepcontext.profiler.recording.session_manager import SessionManager
    from deepcontext.session_start import profile, start

    __version__: str
    _MANAGER: SessionManager

__all__ = [
    "Profile",
    "Session",
    "__version__",
    "errors",
    "profile",
    "scope",
    "start",
    "step",
    "stop",
]


def _manager() -> SessionManager:
    native_core.require()
    try:
        from deepcontext.profiler.recording.session_manager import MANAGER  # noqa: PLC0415  the native core
    except ImportError as error:
        _explain(error)
        raise

    return MANAGER


def _explain(error: Exception) -> None:
    """Raise SessionError if a signal handler found modules of the profiler that are half made."""
    if native_core.is_importing("deepcontext."):
        raise errors.SessionError(
            "no session is running, and none can be started here: this signal handler has interrupted "
            "the import of the profiler"
        ) from error


def stop(reason: str = "exit") -> Profile:
    """Stop the running session, write its file and return the profile.

    Raises:
        SessionError: when no session is running.
    """
    return _end(reason)()


def _end(reason: str) -> Callable[[], Profile]:
    """Stop the running session and write its file; return what reads the profile, with numpy."""
    session = _manager().session
    capture = _manager().stop(reason)

    def read() -> Profile:
        import dataclasses  # noqa: PLC0415  not needed to import the package

        path = session.path if session else None
        try:
            made = _profile_class().from_bytes(capture.encode())
        except (ImportError, AttributeError) as error:
            if not native_core.is_importing():
                raise
            raise errors.SessionError(
                f"the session is stopped and its profile is in {path or 'memory'}, but cannot be read "
                "here, because this signal handler has interrupted an import"
            ) from error
        return made if path is None else dataclasses.replace(made, source=str(path))

    return read


def scope(name: str) -> Scope | EmptyScope:
    """Put what runs inside under a named frame: ``with deepcontext.scope("evaluate"): ...``.

    As a decorator, ``@deepcontext.scope("evaluate")``, it does so for each call of a function, which
    may be a coroutine or a generator. Does nothing while no session is running, so that it may stay in
    the program.
    """
    if native_core.is_missing():
        return native_core.EmptyScope()
    try:
        from deepcontext.profiler.recording.scope import Scope  # noqa: PLC0415  the native core
    except ImportError:
        if native_core.is_importing(
            "deepcontext."
        ):  # below a signal handler: no session is running
            return native_core.EmptyScope()
        raise

    return Scope(name)


def step(*, keep: bool = False) -> None:
    """Mark the end of one step of the main loop; does nothing when no session is running.

    Args:
        keep: keep the time line of the step that ends; of the steps with this mark, the last 8 are kept.
    """
    if native_core.is_missing():
        return
    try:
        running = _manager().session
    except errors.SessionError:  # a signal handler has interrupted the import of the profiler
        return
    if running is not None:
        running.step(keep=keep)


def __getattr__(name: str) -> object:
    """Load names that need numpy, the native core or the table of options on first use."""
    match name:
        case "start" | "profile":
            return _from_session_start(name)
        case "Profile":
            return _profile_class()
        case "Session":
            from deepcontext.profiler.recording.session import Session  # noqa: PLC0415

            return Session
        case "__version__":
            return _version()
        case "_MANAGER":
            return _manager()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _from_session_start(name: str) -> object:
    try:
        from deepcontext import session_start  # noqa: PLC0415  see __getattr__

        return getattr(session_start, name)
    except (ImportError, AttributeError) as error:
        _explain(error)
        raise


def __dir__() -> list[str]:
    """List names for completion; not `Profile`, because looking at it would load numpy."""
    return sorted({*globals(), "profile", "start"})


def load_ipython_extension(shell: object) -> None:
    """Register the cell magic ``%%deepcontext``; called by ``%load_ext deepcontext``."""
    from deepcontext.ui import notebook  # noqa: PLC0415  imports the user interface

    notebook.load_ipython_extension(shell)


def _version() -> str:
    if native_core.is_missing():
        import importlib.metadata  # noqa: PLC0415  only where there is no other way

        return importlib.metadata.version("deepcontext-profiler")
    from deepcontext import _native  # noqa: PLC0415  the native core knows it

    return _native.VERSION


def _profile_class() -> type[Profile]:
    from deepcontext.profiler.model.profile import Profile  # noqa: PLC0415  imports numpy

    # The user interface decides how a notebook shows a profile; the profiler may not import it.
    Profile.html_view = staticmethod(_html_of)
    return Profile


def _html_of(profile: Profile) -> str:
    from deepcontext.ui.notebook import profile_html  # noqa: PLC0415  imports the user interface

    return profile_html(profile)
