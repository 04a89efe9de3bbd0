"""The program's own profiler sessions of XLA, which allows one at a time: when they start and end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext.collectors.jax.names import Found

_ENDING: Final = ("stop", "stop_and_export", "stop_and_get_profile_data")


class UserSessions:
    """Calls back when the program starts and ends profiler sessions."""

    def __init__(
        self, session: Found, pause: Callable[[], None], resume: Callable[[], None]
    ) -> None:
        self._found = session
        self._pause = pause
        self._resume = resume
        self._originals: dict[str, Any] = {}
        self._server: Any = None
        self._stand_in: Any = None

    def install(self) -> None:
        """Watch the class of sessions and the profiler's server."""
        original, pause = self._found.value, self._pause

        class Maker(type):
            """The class of sessions as the program sees it; calling it makes a genuine session."""

            def __call__(cls, *arguments: Any, **keywords: Any) -> Any:
                pause()
                return original(*arguments, **keywords)

            def __instancecheck__(cls, instance: Any) -> bool:
                return isinstance(instance, original)

        self._stand_in = Maker("ProfilerSession", (), {"__doc__": original.__doc__})
        self._found.replace(self._stand_in)
        for name in _ENDING:
            method = getattr(original, name, None)
            if method is not None:
                self._originals[name] = method
                setattr(original, name, self._ending(method))
        self._server = getattr(self._found.owner, "start_server", None)
        if self._server is not None:
            self._found.owner.start_server = self._serve

    def uninstall(self) -> None:
        """Put the originals back."""
        self._found.restore(self._stand_in)
        for name, method in self._originals.items():
            setattr(self._found.value, name, method)
        if self._server is not None:
            self._found.owner.start_server = self._server

    def _ending(self, method: Any) -> Any:
        def stop(session: Any, *arguments: Any, **keywords: Any) -> Any:
            try:
                return method(session, *arguments, **keywords)
            finally:
                self._resume()

        return stop

    def _serve(self, *arguments: Any, **keywords: Any) -> Any:
        """No windows from now on, because a server may start a session at any moment."""
        self._pause()
        return self._server(*arguments, **keywords)
