"""When to open a window of XLA's tracer, and how long it lasts, so that windows cost little of the time.

Knows no clock, thread or session: it is given moments, and what windows saw. Invariant: the time charged for
windows stays within the allowance, but for looks at a program of which no run was seen whole.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

DUTY: Final = 0.05  # part of the time in which programs are sampled
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
_TURN_S: Final = 0.05  # until the next check when the allowance is used up
_IDLE_S: Final = 0.3  # between two windows when nothing is launched
_EXACT_S: Final = 1.0  # length of one window when they follow each other without a gap
_GRANT_S: Final = (
    1.0  # sampled at once when the first program is compiled; the most that is left unused
)
# Part of the windows' allowance that one event uses. A busy training step has 50,000 events a
# second, so 5 % of its time may be sampled; a loop of small calls has a million.
_EVENT_S: Final = 20e-6
_LEAST_OF_ELAPSED: Final = 0.2


class Moment(NamedTuple):
    """Elapsed and processor time of the process in seconds, and whether it has met others in collectives."""

    now: float
    cpu_s: float
    is_collective: bool = False


class Seen(NamedTuple):
    """What a window saw, as `_native.jax_add_window` returns it.

    Attributes:
        runs: complete runs of the program that takes most of the window; `launches`: of all programs.
        waiting: runs longer than the window; `scarce`: programs that want more runs.
        events: number of all events.
    """

    runs: int
    launches: int
    waiting: int
    scarce: int
    events: int


class WindowPolicy:
    """Decides by the time that windows have used, and by what they saw."""

    def __init__(self, *, exact: bool) -> None:
        self.charged_s = 0.0  # what counts against the allowance
        self.is_scarce = True  # some program was not measured often enough
        self.is_look = False  # the open window is one, of the shortest length
        self.length_s = _EXACT_S if exact else _USUAL_S
        self.look_s = 0.0  # from one look at a long run to the next; 0: no run is waited for
        self._exact = exact
        self._duty = 1.0 if exact else DUTY
        self._shortest_s = _EXACT_S if exact else _SHORTEST_S
        self._charge_rate = 1.0  # of an open second, as in the last window that saw something
        self._begun: Moment | None = None
        self._last_program = 0.0
        self._idle_until = 0.0
        self._granted_s = _GRANT_S
        self._loops = 0  # programs in which the number of operations is not known
        self._peak_rate = 0.0  # most events a second of a window
        self._closed = 0.0

    def begin(self, moment: Moment) -> bool:
        """Start to count; return whether this is the first call."""
        is_first = self._begun is None
        self._begun = self._begun or moment
        return is_first

    def found_program(self, moment: Moment, loops: int) -> None:
        """Grant time for the first run of a new program; `loops` of all have an unknown number of events."""
        self._last_program = moment.now
        if not self._exact:
            # Windows became longer for small programs; of this one they might hold a hundred runs.
            self.length_s = min(self.length_s, _USUAL_S)
        self._loops = loops
        unused_s = self.allowance_s(moment) - self.charged_s
        self._granted_s += min(_USUAL_S, max(0.0, _GRANT_S - unused_s))

    def may_open(self, moment: Moment, *, is_first_run: bool = False) -> bool:
        """Return whether the allowance has room for a window.

        Without its first runs, a program that runs for a short time only is not timed at all.
        """
        further_s = -_GRANT_S if is_first_run else self._window_s()
        room_s = self.allowance_s(moment) + 1e-3
        return self._begun is not None and (self._exact or self.charged_s + further_s <= room_s)

    def is_idle(self, now: float) -> bool:
        """Return whether the last window saw nothing, shortly before."""
        return now < self._idle_until

    def is_look_due(self, now: float) -> bool:
        """Return whether to look at a program of which no run was seen whole."""
        return self._look_due_s(now) <= 0

    def until_next_s(self, moment: Moment, least_s: float) -> float:
        """Return the seconds until a window may open, `least_s` at least."""
        lacking_s = self.charged_s + self._window_s() - self.allowance_s(moment)
        due_s = max(_TURN_S, lacking_s / self._duty) if lacking_s > 0 else 0.0
        due_s = min(due_s, self._look_due_s(moment.now))
        return max(least_s, due_s, self._idle_until - moment.now)

    def allowance_s(self, moment: Moment) -> float:
        """Return the seconds that windows may have used until now.

        A share of processor time if the program gets less of that than elapsed time: on a busy
        machine windows would otherwise take a larger share of what is left for the program. A process
        that waits for others in collectives has little of it; it may have a part of the elapsed time.
        """
        begun = self._begun or moment
        elapsed_s = moment.now - begun.now
        spent_s = min(elapsed_s, moment.cpu_s - begun.cpu_s)
        if moment.is_collective:
            spent_s = max(spent_s, _LEAST_OF_ELAPSED * elapsed_s)
        return self._granted_s + self._duty * spent_s

    @property
    def gap_s(self) -> float:
        """Time from one window to the next."""
        return 0.0 if self._exact else self._window_s() / self._duty

    def closing_time(self, opened: float) -> float:
        """Return when to close a window: after a new program's first run had time to end."""
        if self.is_look:
            return opened + self._shortest_s
        quiet = max(opened, self._last_program) + self.length_s
        return min(quiet, opened + max(_LONGEST_SERIES_S, self.length_s))

    def closed(self, now: float, open_s: float) -> None:
        """Charge a window that was open for `open_s`."""
        self._closed = now
        self.charged_s += open_s

    def saw(self, moment: Moment, seen: Seen, open_s: float) -> None:
        """Charge a window by its events instead, and set the length of the next one."""
        events, waiting = seen.events, seen.waiting
        self.charged_s += events * _EVENT_S - open_s
        if events:
            self._charge_rate = min(1.0, events * _EVENT_S / open_s)
            self._peak_rate = max(self._peak_rate, events / open_s)
            self.is_scarce = seen.scarce > 0
            if not self.is_scarce:
                self._drop_excess(moment)
        else:
            self._idle_until = moment.now + _IDLE_S
        if not self.is_look:  # a look says nothing about the length of windows
            self._set_length(moment, seen, events / open_s)
        self.is_look = False
        if not waiting:
            self.look_s = 0.0
        elif events:
            self.look_s = 2 * self.look_s or _USUAL_S

    def _set_length(self, moment: Moment, seen: Seen, rate: float) -> None:
        """Set the length of the next window, from the last one and its events a second."""
        few = _FEW_RUNS if seen.events < _LARGE_WINDOW else _FEW_LARGE_RUNS
        has_few = seen.events and seen.launches + seen.runs and seen.runs < few
        rate = self._peak_rate if self._loops else rate
        is_full = 2 * self.length_s * rate > _MOST_EVENTS and not self._exact
        if seen.waiting and is_full:
            self.length_s = self._shortest_s
            self._drop_excess(moment)
        elif (seen.waiting or has_few) and not is_full:
            self.length_s = min(_LONGEST_S, self.length_s * 2)
        elif seen.runs > 4 * few:
            self.length_s = max(self._shortest_s, self.length_s / 2)

    def _drop_excess(self, moment: Moment) -> None:
        """Drop what is left of the allowance, so that later windows follow its growth.

        Time granted for new programs would otherwise be spent on a program that has enough runs: a
        step of few events would be traced continuously for the first five seconds, and take 5 %
        longer.
        """
        self._granted_s -= max(0.0, self.allowance_s(moment) - self.charged_s)

    def _window_s(self) -> float:
        """What the next window will use of the allowance."""
        return self.length_s * self._charge_rate

    def _look_due_s(self, now: float) -> float:
        """Seconds until the next look at a program of which no run was seen whole.

        Each is twice as far from the one before, whatever the allowance: without looks, nothing would
        be known of a loop that has used up the allowance. After some seconds the allowance permits
        windows more often.
        """
        return self._closed + self.look_s - now if self.look_s else math.inf
