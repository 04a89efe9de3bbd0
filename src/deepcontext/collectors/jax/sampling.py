"""Time inside compiled programs on the CPU: short windows of XLA's own tracer.

A window is a profiler session of XLA of about 50 ms; its records are reduced at once
(`native/jax/xspace.cpp`), so memory does not grow with time. Launches outside of windows are also
counted, and sampled times are scaled to all launches. XLA allows one session a process, so windows
are closed while the program uses `jax.profiler`. With a GPU backend no window is opened, because a
window would start XLA's GPU tracer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from deepcontext import _native
from deepcontext.collectors.jax.user_sessions import UserSessions
from deepcontext.collectors.shared.internal_thread import NO_THREAD, InternalThread
from deepcontext.collectors.shared.program_lock import ProgramLock
from deepcontext.collectors.shared.wake import Wake
from deepcontext.profiler.recording import clock

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext.collectors.jax.names import Names

DUTY: Final = 0.05  # part of the time in which programs are sampled
OWN_TRACER: Final = "XLA's tracer would start its own tracer there"
_USUAL_S: Final = 0.05
_SHORTEST_S: Final = 0.005
_LONGEST_S: Final = 10.0
# Target number of complete runs per window, of the program that takes most of it: below it double
# the window, above four times it halve it. The edges of a window cut long runs, so that a window of
# few runs is biased to quick runs; for runs with very many events a smaller number has to suffice.
_FEW_RUNS, _FEW_LARGE_RUNS = 10, 2
_LARGE_WINDOW: Final = 20_000  # events
# No window is lengthened to more events: to close one costs 4 us an event, and a loop of tiny
# operations has a million a second. What does not fit is seen in parts, by windows of the shortest length.
_MOST_EVENTS: Final = 50_000
_LONGEST_SERIES_S: Final = 2.0  # of a window while programs are compiled one after another
_POLL_S: Final = 0.1
_TURN_S: Final = 0.05  # until the next check when the allowance is used up
_IDLE_S: Final = 0.3  # between two windows when nothing is launched
_EXACT_S: Final = 1.0  # length of one window when they follow each other without a gap
_GRANT_S: Final = (
    1.0  # sampled at once when the first program is compiled; the most that is left unused
)
# Part of the windows' allowance that one event uses. A busy training step has 50,000 events a
# second, so 5 % of its time may be sampled; a loop of small calls has a million.
_EVENT_S: Final = 20e-6
# In jobs: how often to look for the launch that a window waits for, and how long at most, in gaps
# between windows.
_LOOK_S: Final = 0.01
_LEAST_OF_ELAPSED: Final = 0.2
_LONGEST_WAIT: Final = 2


@dataclass(slots=True)
class SamplingState:
    """What happened to the windows, for the trust report."""

    refusals: list[str] = field(default_factory=list)
    open_s: float = 0.0
    charged_s: float = 0.0  # of the open time, what counts against the allowance
    paused_s: float = 0.0
    pauses: int = 0


class Sampler:
    """Opens and closes windows from a thread of the profiler."""

    def __init__(self, names: Names, *, exact: bool) -> None:
        self._names = names
        self._duty = 1.0 if exact else DUTY
        self._shortest_s = _EXACT_S if exact else _SHORTEST_S
        self._length_s = _EXACT_S if exact else _USUAL_S
        self._charge_rate = 1.0  # of an open second, as in the last window that saw something
        self._exact = exact
        self._lock = ProgramLock()
        self._wake = Wake()
        self._thread = InternalThread(self._run)
        self._session: Any = None
        self._opened = 0.0
        self._begun = self._begun_cpu = 0.0
        self._last_program = 0.0
        self._idle_until = 0.0
        self._granted_s = _GRANT_S
        self._paused_since = 0.0
        self._turns = CollectiveTurns()
        self._is_scarce = True  # some program was not measured often enough
        self._loops = 0  # programs in which the number of operations is not known
        self._peak_rate = 0.0  # most events a second of a window
        self._look_s = 0.0  # from one look at a long run to the next; 0: no run is waited for
        self._is_look = False  # the open window is one, of the shortest length
        self._closed = 0.0
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
            self._last_program = clock.monotonic_s()
            self._start()
            loops = _native.jax_program_counts()["programs_with_loops"]
            if loops > self._loops and not self._exact:
                # How many events its first run has is not known.
                self._length_s = min(self._length_s, _USUAL_S)
            self._loops = loops
            unused_s = self._allowance_s(self._last_program) - self.state.charged_s
            self._granted_s += min(_USUAL_S, max(0.0, _GRANT_S - unused_s))  # for its first run
            # Without its first runs, a program that runs for a short time only is not timed at all.
            if self._session is None and self._allowed(self._last_program, further_s=-_GRANT_S):
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
        if not self._begun:
            self._begun, self._begun_cpu = clock.monotonic_s(), clock.process_cpu_s()
            if not self._thread.start():
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
            now = clock.monotonic_s()
            if self._session is not None and now >= self._closing_time():
                self._close(keep=True, reopen=self._exact)
            is_due = self._session is None and now >= self._idle_until
            is_allowed = self._allowed(now, further_s=self._window_s())
            is_look = not is_allowed and not self._is_blocked() and self._look_due_s(now) <= 0
            if is_due and (is_allowed or is_look):
                if self._is_scarce or self._turns.is_now(now, self._gap_s()):
                    self._is_look = is_look
                    self._open()
            else:
                self._turns.forget()

    def _until_next(self) -> float:
        """Seconds until there is something to do."""
        now = clock.monotonic_s()
        with self._lock:
            if self._session is not None:
                return max(0.001, self._closing_time() - now)
            if self._is_blocked():
                return 0.5
            lacking_s = self.state.charged_s + self._window_s() - self._allowance_s(now)
            due_s = max(_TURN_S, lacking_s / self._duty) if lacking_s > 0 else 0.0
            due_s = min(due_s, self._look_due_s(now))
            least_s = _LOOK_S if self._turns.is_waiting else 0.001
            return max(least_s, due_s, self._idle_until - now)

    def _allowance_s(self, now: float) -> float:
        """Seconds that windows may have used until now.

        A share of processor time if the program gets less of that than elapsed time: on a busy
        machine windows would otherwise take a larger share of what is left for the program. A process
        that waits for others in collectives has little of it; it may have a part of the elapsed time.
        """
        elapsed_s = now - self._begun
        spent_s = min(elapsed_s, clock.process_cpu_s() - self._begun_cpu)
        if _native.jax_collective_launches():
            spent_s = max(spent_s, _LEAST_OF_ELAPSED * elapsed_s)
        return self._granted_s + self._duty * spent_s

    def _drop_excess(self) -> None:
        """Drop what is left of the allowance, so that later windows follow its growth.

        Time granted for new programs would otherwise be spent on a program that has enough runs: a
        step of few events would be traced continuously for the first five seconds, and take 5 %
        longer.
        """
        excess_s = self._allowance_s(clock.monotonic_s()) - self.state.charged_s
        self._granted_s -= max(0.0, excess_s)

    def _window_s(self) -> float:
        """What the next window will use of the allowance."""
        return self._length_s * self._charge_rate

    def _gap_s(self) -> float:
        """Time from one window to the next."""
        return 0.0 if self._exact else self._window_s() / self._duty

    def _closing_time(self) -> float:
        """Return when to close the window: after a new program's first run had time to end."""
        if self._is_look:
            return self._opened + self._shortest_s
        quiet = max(self._opened, self._last_program) + self._length_s
        return min(quiet, self._opened + max(_LONGEST_SERIES_S, self._length_s))

    def _look_due_s(self, now: float) -> float:
        """Seconds until the next look at a program of which no run was seen whole.

        Each is twice as far from the one before, whatever the allowance: without looks, nothing would
        be known of a loop that has used up the allowance. After some seconds the allowance permits
        windows more often.
        """
        return self._closed + self._look_s - now if self._look_s else math.inf

    def _is_blocked(self) -> bool:
        return self._is_over or bool(self._paused_since) or bool(self.state.refusals)

    def _allowed(self, now: float, *, further_s: float) -> bool:
        if self._is_blocked() or not self._begun or self._make_session is None:
            return False
        charged_s = self.state.charged_s + further_s
        return self._exact or charged_s <= self._allowance_s(now) + 1e-3

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
        self._closed = clock.monotonic_s()
        open_s = self._closed - self._opened
        self.state.open_s += open_s
        self.state.charged_s += open_s
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
        _, runs, launches, waiting, scarce, events = _native.jax_add_window(notes, xspace)
        self.state.charged_s += events * _EVENT_S - open_s
        if events:
            self._charge_rate = min(1.0, events * _EVENT_S / open_s)
            self._peak_rate = max(self._peak_rate, events / open_s)
            self._is_scarce = scarce > 0
            if not scarce:
                self._drop_excess()
        else:
            self._idle_until = clock.monotonic_s() + _IDLE_S
        is_short = bool(waiting or (events and launches + runs and runs < _few(events)))
        if not self._is_look:  # a look says nothing about the length of windows
            self._set_length(
                is_short=is_short,
                is_long=runs > 4 * _few(events),
                waiting=waiting,
                rate=events / open_s,
            )
        self._is_look = False
        if not waiting:
            self._look_s = 0.0
        elif events:
            self._look_s = 2 * self._look_s or _USUAL_S

    def _set_length(self, *, is_short: bool, is_long: bool, waiting: int, rate: float) -> None:
        """Set the length of the next window, from the last one and its events a second."""
        rate = self._peak_rate if self._loops else rate
        is_full = 2 * self._length_s * rate > _MOST_EVENTS and not self._exact
        if waiting and is_full:
            self._length_s = self._shortest_s
            self._drop_excess()
        elif is_short and not is_full:
            self._length_s = min(_LONGEST_S, self._length_s * 2)
        elif is_long:
            self._length_s = max(self._shortest_s, self._length_s / 2)


def _few(events: int) -> int:
    """Complete runs below which a window of so many events is too short."""
    return _FEW_RUNS if events < _LARGE_WINDOW else _FEW_LARGE_RUNS


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
