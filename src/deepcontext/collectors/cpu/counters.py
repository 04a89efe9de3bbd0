"""Counters of the processor and the kernel: cycles, cache misses, page faults, ...

The CPU sampler reads the counters (`native/sampling/perf_counters.h`); this file chooses which, and
says why others cannot be read. Off unless requested.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext import _native
from deepcontext.errors import EnvironmentProblem
from deepcontext.profiler.format.counter_names import COUNTER_NAMES, COUNTERS
from deepcontext.profiler.format.status import Outcome, Status
from deepcontext.profiler.recording.collector import Availability

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepcontext.profiler.format.metric import MetricDescriptor
    from deepcontext.profiler.recording.collector import PhaseRule
    from deepcontext.profiler.recording.options import SessionOptions

_PARANOID_FILE: Final = Path("/proc/sys/kernel/perf_event_paranoid")
# Above this level an ordinary process may not count anything. Source:
# https://docs.kernel.org/admin-guide/sysctl/kernel.html#perf-event-paranoid
_MOST_OPEN_LEVEL: Final = 2
# Warn if counters ran for less than this share of the time.
_NOTABLE_SHARE: Final = 0.95
_NO_PMU: Final = (
    "the processor offers no such counter here, as in a virtual machine without a PMU; count on "
    "the host itself, or let the host pass its PMU through"
)
_TOO_MANY_FILES: Final = "too many open files; raise the limit (ulimit -n) or request fewer"
_REASONS: Final = {
    errno.ENOENT: _NO_PMU,
    errno.ENODEV: _NO_PMU,
    errno.EOPNOTSUPP: _NO_PMU,
    errno.EPERM: (
        "perf_event_open is forbidden, usually by the container runtime (seccomp); start the "
        "container with a seccomp profile that allows it, or with CAP_PERFMON"
    ),
    errno.ENOSYS: "this kernel has no perf_event_open, or the container hides it (seccomp)",
    errno.EMFILE: _TOO_MANY_FILES,
    errno.ENFILE: _TOO_MANY_FILES,
    errno.EBUSY: "another program uses the processor's counters exclusively",
}


class Counters:
    """Chooses what the sampler reads of each thread."""

    name = "counters"
    phase_rules: Sequence[PhaseRule] = ()
    metrics: Sequence[MetricDescriptor] = tuple(COUNTERS.values())

    def __init__(self) -> None:
        self._answers: list[tuple[str, int, bool]] = []
        self._is_wanted = False

    def probe(self) -> Availability:
        """Say which counters could be read here, and why the others could not."""
        if not sys.platform.startswith("linux"):
            return Availability(available=False, reason="counters are read through Linux's perf")
        answers = _native.ask_for_perf_events(COUNTER_NAMES)
        usable = [name for name, error, _ in answers if not error]
        reasons = _refusals(answers)
        if not usable:
            return Availability(available=False, reason=reasons)
        parts = [f"{','.join(usable)}{_user_only(answers)}", reasons]
        return Availability(available=True, reason="; ".join(filter(None, parts)))

    def start(self, options: SessionOptions) -> None:
        """Choose what the sampler, which starts later, reads.

        Raises:
            EnvironmentProblem: with the reason why nothing can be counted.
        """
        self._is_wanted = bool(options.counters)
        if not self._is_wanted:
            return
        if not options.cpu_rate:
            raise EnvironmentProblem(
                "counters are read when threads are sampled, and the sampling rate is 0; give --cpu-rate"
            )
        self._answers = _native.choose_perf_events(options.counters)
        if all(error for _, error, _ in self._answers):
            raise EnvironmentProblem(_refusals(self._answers))

    def stop(self) -> None:
        """Clear the choice, so that the next session begins without one."""
        if self._is_wanted:
            _native.choose_perf_events(())

    def settle(self) -> None:
        """Nothing arrives late."""

    def outcome(self) -> Outcome:
        """Say what was counted, for how many threads, and what could not be counted."""
        if not self._is_wanted:
            return Outcome(Status.OFF, "none requested; choose counters with --counters")
        counts = _native.perf_counts()
        if not counts["threads"]:
            return Outcome(Status.UNAVAILABLE, _thread_refusal(counts) or "no thread was sampled")
        refusals = _refusals(self._answers)
        details: dict[str, str | int | float] = {
            "counted": ", ".join(name for name, error, _ in self._answers if not error)
            + _user_only(self._answers)
        }
        if counts["enabled_ns"]:
            details["counted_share"] = counts["running_ns"] / counts["enabled_ns"]
        return Outcome(
            Status.DEGRADED if refusals else Status.RAN,
            refusals,
            details,
            {
                "threads_counted": counts["threads"],
                "threads_not_counted": counts["threads_refused"],
            },
            _notes(counts),
        )

    def sections(self) -> Mapping[str, bytes]:
        """Nothing beside the tree."""
        return {}


def _notes(counts: _native.PerfCounts) -> tuple[str, ...]:
    notes = []
    if counts["threads_refused"]:
        notes.append(
            f"the counters of {counts['threads_refused']} threads were not read: "
            f"{_thread_refusal(counts)}"
        )
    if counts["running_ns"] < _NOTABLE_SHARE * counts["enabled_ns"]:
        share = counts["running_ns"] / counts["enabled_ns"]
        notes.append(
            "the processor's counters are too few or were shared with other programs: they counted "
            f"for {share:.0%} of the time, and their values are scaled to all of the time; request "
            "fewer --counters"
        )
    return tuple(notes)


def _thread_refusal(counts: _native.PerfCounts) -> str:
    if counts["error"]:
        return _sentence(counts["error"])
    return "more threads at once than can be counted" if counts["threads_refused"] else ""


def _user_only(answers: Sequence[tuple[str, int, bool]]) -> str:
    names = [name for name, error, is_user_only in answers if is_user_only and not error]
    return f" (outside the kernel only: perf_event_paranoid is {_paranoid()})" if names else ""


def _refusals(answers: Sequence[tuple[str, int, bool]]) -> str:
    """Return which events cannot be counted and why, grouped by reason; "" if all can."""
    names_of: dict[str, list[str]] = {}
    for name, error, _ in answers:
        if error:
            names_of.setdefault(_sentence(error), []).append(name)
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in names_of.items())


def _sentence(error: int) -> str:
    """Say why the kernel refused, and what to do about it."""
    level = _paranoid()
    if error in {errno.EACCES, errno.EPERM} and level > _MOST_OPEN_LEVEL:
        return (
            f"perf_event_paranoid is {level}; an administrator can allow counting with "
            "'sysctl kernel.perf_event_paranoid=2', or give the program CAP_PERFMON"
        )
    if error == errno.EACCES:
        return (
            f"it happens in the kernel, and perf_event_paranoid is {level}; an administrator can "
            "allow it with 'sysctl kernel.perf_event_paranoid=1', or give the program CAP_PERFMON"
        )
    return _REASONS.get(error) or f"the kernel refuses: {os.strerror(error)}"


def _paranoid() -> int:
    try:
        return int(_PARANOID_FILE.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0
