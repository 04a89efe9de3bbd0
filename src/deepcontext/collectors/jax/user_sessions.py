"""The program's own profiler sessions of XLA, which allows one at a time: when they start and end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deepcontext import _native

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
        original = self._found.value

        class Maker(type):
            """The class of sessions as the program sees it; calling it makes a genuine session."""

            __call__ = staticmethod(_native.watched_call(original, self._before))

            def __instancecheck__(cls, instance: Any) -> bool:
                return isinstance(instance, original)

        self._stand_in = Maker("ProfilerSession", (), {"__doc__": original.__doc__})
        self._found.replace(self._stand_in)
        for name in _ENDING:
            method = getattr(original, name, None)
            if method is not None:
                self._originals[name] = method
                setattr(original, name, _native.watched_call(method, None, self._after))
        self._server = getattr(self._found.owner, "start_server", None)
        if self._server is not None:
            # No windows from then on, because a server may start a session at any moment.
            self._found.owner.start_server = _native.watched_call(self._server, self._before)

    def uninstall(self) -> None:
        """Put the originals back."""
        self._found.restore(self._stand_in)
        for name, method in self._originals.items():
            setattr(self._found.value, name, method)
        if self._server is not None:
            self._found.owner.start_server = self._server

    def _before(self, *_arguments: object) -> None:
        self._pause()

    def _after(self, *_arguments: object) -> None:
        self._resume()
