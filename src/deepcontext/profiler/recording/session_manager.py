"""The one session of a process: who may start it, and what ends it.

Does not record (`session.py`). Invariant: at most one session runs in a process, and a forked child
does not inherit its parent's session.
"""

from __future__ import annotations

import atexit
from typing import TYPE_CHECKING

from deepcontext import _native
from deepcontext.errors import SessionError
from deepcontext.profiler.format.own_os import os
from deepcontext.profiler.recording import operations
from deepcontext.profiler.recording.child_end import ChildEnd
from deepcontext.profiler.recording.session import Session
from deepcontext.profiler.recording.session_file import SessionFile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from deepcontext.profiler.recording.capture import Capture
    from deepcontext.profiler.recording.collector import Collector
    from deepcontext.profiler.recording.options import SessionOptions


class SessionManager:
    """The process's one session. Its methods may be called from any thread."""

    def __init__(self) -> None:
        self._session: Session | None = None
        self._pid = self._first_pid = os.getpid()
        self._has_process_hooks = False
        self._child_end = ChildEnd(self._at_exit)
        self._stops_at_exit = False
        self._gives_way = False

    @property
    def session(self) -> Session | None:
        """The running session, or None; None in a forked child."""
        return self._session if self._pid == os.getpid() else None

    def start(
        self,
        path: str | os.PathLike[str] | SessionFile | None,
        options: SessionOptions,
        collectors: Sequence[Callable[[], Collector]],
        *,
        force: bool = False,
        launched_as: str | None = None,
        gives_way: bool = False,
    ) -> Session:
        """Start the process's session.

        Args:
            path: file to write the profile to; None keeps it in memory until `stop`.
            options: what is recorded.
            collectors: makers of the sources to start, in this order.
            force: whether the file is replaced even if it is not a profile.
            launched_as: the program that the launcher runs; the launcher stops the session. None if
                the program starts the session, which then ends with the interpreter at the latest.
            gives_way: end this session, and write its profile, when the program starts its own session.

        Raises:
            SessionError: when a session is running.
            UserError: when the file may not or cannot be written.
            EnvironmentProblem: when the machine fails to write it.
        """
        started: list[Session] = []

        def begin() -> Session:
            self._refuse_second()
            file = path
            if file is not None and not isinstance(file, SessionFile):
                file = SessionFile(file, force=force)
            session = Session(file, options, [make() for make in collectors], launched_as)
            self._add_process_hooks()
            self._pid = os.getpid()
            session._begin()  # noqa: SLF001  sessions are only made here
            self._stops_at_exit = launched_as is None
            self._gives_way = gives_way
            self._session = session
            started.append(session)
            self._child_end.wait(is_fork=self._pid != self._first_pid)
            return session

        try:
            return operations.run_exclusively(begin)
        except BaseException as error:
            if started:  # a signal handler raised: the caller gets no session to stop
                self._end_interrupted(started[0], f"exception: {type(error).__name__}")
            raise

    def _refuse_second(self) -> None:
        running = self.session
        if running is not None and self._gives_way:
            self._session = None
            running._end("the program started its own session")  # noqa: SLF001
        elif running is not None:
            raise SessionError(
                f"a session is already running and writes to {_target(running.path)}; "
                "stop it before another is started"
            )

    def _end_interrupted(self, session: Session, reason: str) -> None:
        def end() -> None:
            if self.session is session:
                self._session = None
                session._end(reason)  # noqa: SLF001

        operations.run_exclusively(end)

    def _running(self) -> Session:
        session = self.session
        if session is None:
            raise SessionError("no session is running; start one first")
        return session

    def stop(self, reason: str = "exit") -> Capture:
        """Stop the running session and write its file.

        Raises:
            SessionError: when none is running.
        """

        def end() -> tuple[Session, Capture]:
            session = self._running()
            self._session = None
            return session, session._end(reason)  # noqa: SLF001

        session, capture = operations.run_exclusively(end)
        session._warn_of_notes()  # noqa: SLF001
        return capture

    def discard(self) -> None:
        """Stop the running session and remove its file.

        Raises:
            SessionError: when none is running.
        """

        def discard() -> None:
            session = self._running()
            self._session = None
            session._discard()  # noqa: SLF001

        operations.run_exclusively(discard)

    def _add_process_hooks(self) -> None:
        """Register for exit and forks.

        The watcher thread pauses at a fork, because `os.fork` warns about processes with threads.
        """
        if self._has_process_hooks:
            return
        self._has_process_hooks = True
        atexit.register(self._at_interpreter_exit)
        os.register_at_fork(
            before=_native.pause_watcher,
            after_in_parent=self._after_fork_in_parent,
            after_in_child=self._after_fork_in_child,
        )

    def _at_interpreter_exit(self) -> None:
        if not self._child_end.waits:
            self._at_exit()

    def _at_exit(self) -> None:
        if self._stops_at_exit and self.session is not None:
            self.stop()

    def _after_fork_in_parent(self) -> None:
        if self.session is not None:
            self.session._forked_children += 1  # noqa: SLF001
        _native.resume_watcher()  # also of a session that is about to start on another thread

    def _after_fork_in_child(self) -> None:
        # The native side has stopped recording, and knows no operation.
        self._session = None


MANAGER = SessionManager()  # the one of this process: modules are imported once, under a lock


def _target(path: Path | None) -> str:
    return "memory" if path is None else f"'{path}'"
