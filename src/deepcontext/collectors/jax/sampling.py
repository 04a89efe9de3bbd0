"""Time inside compiled programs on the CPU: short windows of XLA's own tracer.

A window is a profiler session of XLA; `window_policy.py` says when it opens and how long it lasts. Its
records are reduced at once (`native/jax/xspace.cpp`), so memory does not grow with time. Launches outside
of windows are also counted, and sampled times are scaled to all launches. XLA allows one session a
process, so windows are closed while the program uses `jax.profiler`. With a GPU backend no window is
opened, because a window would start XLA's GPU tracer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from deepcontext import _native
from deepcontext.collectors.jax.user_sessions import UserSessions
from deepcontext.collectors.jax.window_policy import Moment, Seen, WindowPolicy
from deepcontext.collectors.shared.internal_thread import NO_THREAD, InternalThread
from deepcontext.collectors.shared.program_lock import ProgramLock
from deepcontext.collectors.shared.wake import Wake
from deepcontext.profiler.recording import clock

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext.collectors.jax.names import Names

OWN_TRACER: Final = "XLA's tracer would start its own tracer there"
_LONGEST_S: Final = 10.0
_POLL_S: Final = 0.1
# In jobs: how often to look for the launch that a window waits for, and how long at most, in gaps
# between windows.
_LOOK_S: Final = 0.01
_LONGEST_WAIT: Final = 2


@dataclass(slots=True)
class SamplingState:
    """What happened to the windows, for the trust report."""

    refusals: list[str] = field(default_factory=list)
    open_s: float = 0.0
    paused_s: float = 0.0
    pauses: int = 0


class Sampler:
    """Opens and closes windows from a thread of the profiler."""

    def __init__(self, names: Names, *, exact: bool) -> None:
        self._names = names
        self._policy = WindowPolicy(exact=exact)
        self._exact = exact
        self._lock = ProgramLock()
        self._wake = Wake()
        self._thread = InternalThread(self._run)
        self._session: Any = None
        self._opened = 0.0
        self._paused_since = 0.0
        self._turns = CollectiveTurns()
        self._is_over = False
        self._make_session: Callable[[], Any] | None = None
        self._stop_session: Callable[[Any], bytes] = _no_session
        self._guard: UserSessions | None = None
        self._find_programs: Callable[[], None] | None = None
        self.state = SamplingState()

    # -- life

    def install(self) -> None:
        """Find XLA's tracer, and watch for the program's use of it."""
        session = self._names.find("profiler_session")
        options = self._names.find("profiler_options")
        if session is None or options is None:
            return
        make_session, make_options = session.value, options.value

        def make() -> Any:
            wanted = make_options()
            wanted.host_tracer_level = 1  # operations only
            wanted.python_tracer_level = 0
            wanted.enable_hlo_proto = False
            return make_session(wanted)

        self._make_session = make
        self._stop_session = make_session.stop  # before the guard is in its place
        self._guard = UserSessions(session, self.pause, self.resume)
        self._guard.install()

    def uninstall(self) -> None:
        """End the thread and drop an open window."""
        with self._lock:
            self._is_over = True
            self._close(keep=False)
        self._wake.set()
        self._thread.join()
        if self._guard is not None:
            self._guard.uninstall()

    def on_program(self, platform: str) -> None:
        """A program was compiled or found: sample its first run, if the allowance permits."""
        if self._make_session is None or not _native.is_recording():
            return  # in a forked child the lock may never be released
        with self._lock:
            if platform != "cpu":
                self._refuse(f"programs run on '{platform}': {OWN_TRACER}")
            self._start()
            moment = _moment()
            loops = _native.jax_program_counts()["programs_with_loops"]
            self._policy.found_program(moment, loops)
            may_open = self._session is None and not self._is_blocked()
            if may_open and self._policy.may_open(moment, is_first_run=True):
                self._open()
        self._wake.set()

    def poll(self, find_programs: Callable[[], None]) -> None:
        """Look for new programs periodically, because no hook reports them."""
        if self._make_session is None:
            return
        self._find_programs = find_programs
        with self._lock:
            self._start()

    def flush(self) -> None:
        """Take what the open window has recorded."""
        with self._lock:
            self._close(keep=True)
        self._wake.set()

    def pause(self) -> None:
        """Close windows: the program is about to start a session."""
        if not _native.is_recording():
            return
        with self._lock:
            self._close(keep=True)
            if not self._paused_since:
                self._paused_since = clock.monotonic_s()
                self.state.pauses += 1

    def resume(self) -> None:
        """The program's session is over."""
        if not _native.is_recording():
            return
        with self._lock:
            if self._paused_since:
                self.state.paused_s += clock.monotonic_s() - self._paused_since
            self._paused_since = 0.0
        self._wake.set()

    @property
    def is_paused(self) -> bool:
        """Whether a profiler session of the program keeps windows closed."""
        return bool(self._paused_since)

    # -- windows

    def _start(self) -> None:
        if self._policy.begin(_moment()) and not self._thread.start():
            self._refuse(NO_THREAD)

    def _run(self) -> None:
        try:
            while not self._is_over:
                self._wake.wait(min(self._until_next(), self._poll_s()))
                if self._find_programs is not None and not self._is_over:
                    self._find_programs()
                self._turn()
        except Exception as error:  # noqa: BLE001  the thread ends, and no window may stay open
            self._fail("the thread that samples ended", error)

    def _fail(self, what: str, error: Exception) -> None:
        """Open no further windows, and drop the open one."""
        with self._lock:
            self.state.refusals.append(f"{what}: {type(error).__name__}: {error}")
            self._close(keep=False)

    def _poll_s(self) -> float:
        return _LONGEST_S if self._find_programs is None else _POLL_S

    def _turn(self) -> None:
        with self._lock:
            if self._is_over:
                return
            moment, policy = _moment(), self._policy
            if self._session is not None and moment.now >= policy.closing_time(self._opened):
                self._close(keep=True, reopen=self._exact)
            is_due = self._session is None and not policy.is_idle(moment.now)
            is_allowed = not self._is_blocked() and policy.may_open(moment)
            is_look = not is_allowed and not self._is_blocked() and policy.is_look_due(moment.now)
            if is_due and (is_allowed or is_look):
                if policy.is_scarce or self._turns.is_now(moment.now, policy.gap_s):
                    policy.is_look = is_look
                    self._open()
            else:
                self._turns.forget()

    def _until_next(self) -> float:
        """Seconds until there is something to do."""
        moment = _moment()
        with self._lock:
            if self._session is not None:
                return max(0.001, self._policy.closing_time(self._opened) - moment.now)
            if self._is_blocked():
                return 0.5
            least_s = _LOOK_S if self._turns.is_waiting else 0.001
            return self._policy.until_next_s(moment, least_s)

    def _is_blocked(self) -> bool:
        is_refused = self._make_session is None or bool(self.state.refusals)
        return self._is_over or bool(self._paused_since) or is_refused

    def _refuse(self, reason: str) -> None:
        if reason not in self.state.refusals:
            self._close(keep=True)
            self.state.refusals.append(reason)

    def _open(self) -> None:
        make = self._make_session
        if make is None or self._has_accelerator():
            return
        _native.jax_open_window()
        try:
            self._session = make()
        except Exception as error:  # noqa: BLE001  whatever XLA says, the program goes on
            _native.jax_close_window()
            self._refuse(f"XLA's tracer did not start: {error}")
            return
        self._opened = clock.monotonic_s()

    def _has_accelerator(self) -> bool:
        """Return whether a GPU backend is loaded, even if no program was compiled for it yet."""
        backends = self._names.find("backends")
        others = [name for name in dict(backends.value) if name != "cpu"] if backends else ["?"]
        for name in others:
            self._refuse(
                f"backend '{name}' is loaded: {OWN_TRACER}"
                if name != "?"
                else "it is not known whether an accelerator is in use"
            )
        return bool(others)

    def _close(self, *, keep: bool, reopen: bool = False) -> None:
        """Close the open window; with `reopen`, open the next one before this one is read."""
        if self._session is None:
            return
        session, self._session = self._session, None
        closed = clock.monotonic_s()
        open_s = closed - self._opened
        self.state.open_s += open_s
        self._policy.closed(closed, open_s)
        try:
            xspace = self._stop_session(session)
        except Exception as error:  # noqa: BLE001  for example because another session was started
            _native.jax_close_window()
            self.state.refusals.append(f"XLA's tracer gave no data: {error}")
            return
        notes = _native.jax_close_window()
        if reopen:
            self._open()
        if keep:
            try:
                self._read(notes, xspace, open_s)
            except Exception as error:  # noqa: BLE001  the program may be the caller
                self._fail("a window was not read", error)

    def _read(self, notes: object, xspace: bytes, open_s: float) -> None:
        seen = Seen(*_native.jax_add_window(notes, xspace)[1:])
        self._policy.saw(_moment(), seen, open_s)


def _moment() -> Moment:
    is_collective = bool(_native.jax_collective_launches())
    return Moment(clock.monotonic_s(), clock.process_cpu_s(), is_collective)


class CollectiveTurns:
    """When to open windows so that the processes of a job see the same collectives.

    Processes that meet in collectives are at nearly the same launch at any moment. So a window that is due
    waits for a launch whose number is a multiple of a power of two, about as many launches as come from
    one window to the next.
    """

    def __init__(self) -> None:
        self._begun: tuple[float, int] | None = None  # time and launches when first asked
        self._since: tuple[float, int] | None = None  # the same when the window became due

    @property
    def is_waiting(self) -> bool:
        """Whether a window is due and waits for its launch."""
        return self._since is not None

    def forget(self) -> None:
        """No window is due."""
        self._since = None

    def is_now(self, now: float, gap_s: float) -> bool:
        """Return whether to open the window that is due."""
        launches = _native.jax_collective_launches()
        if self._begun is None and launches:
            self._begun = now, launches
        if self._begun is None or gap_s <= 0:
            return True
        if self._since is None:
            self._since = now, launches
        rate = (launches - self._begun[1]) / max(now - self._begun[0], 1e-9)
        every = 1 << max(0, round(math.log2(max(rate * gap_s, 1.0))))
        since, before = self._since
        return launches // every > before // every or now - since >= _LONGEST_WAIT * gap_s


def _no_session(_session: Any) -> bytes:
    return b""
