"""What the process used while a session ran: time, processor time, memory. Linux only."""

from __future__ import annotations

import contextlib
import dataclasses
from dataclasses import dataclass

from deepcontext.profiler.format.own_os import os, read_file
from deepcontext.profiler.recording import clock


@dataclass(frozen=True, slots=True)
class Usage:
    """Use of resources between two moments.

    Attributes:
        start_unix_ns: wall-clock time of the first moment, ns since 1970.
        wall_ns: elapsed time in ns.
        cpu_user_ns: processor time in user mode over all threads, in ns.
        cpu_system_ns: processor time in the kernel over all threads, in ns.
        peak_rss_bytes: largest resident set of the process so far, in bytes.
    """

    start_unix_ns: int
    wall_ns: int
    cpu_user_ns: int
    cpu_system_ns: int
    peak_rss_bytes: int


class ProcessUsage:
    """Measures from its construction to `freeze`, or to each `read` until then.

    Args:
        begin_ns: when the elapsed time began, in ns of `clock.monotonic_ns`; 0 for now.
    """

    def __init__(self, begin_ns: int = 0) -> None:
        now_ns = clock.monotonic_ns()
        self._start_ns = begin_ns or now_ns
        self._start_unix_ns = clock.unix_ns() - (now_ns - self._start_ns)
        self._start_times = os.times()
        self._start_cpu_ns = clock.process_cpu_ns()
        self._peak_rss_bytes = 0
        self._frozen: Usage | None = None

    def freeze(self, end_ns: int) -> None:
        """End the measurement; the elapsed time ended at `end_ns` of `clock.monotonic_ns`."""
        self._frozen = dataclasses.replace(self.read(), wall_ns=end_ns - self._start_ns)

    def read(self) -> Usage:
        """Return what was used so far, or until `freeze`."""
        if self._frozen is not None:
            return self._frozen
        with contextlib.suppress(OSError):  # no descriptor is free: the last known peak
            self._peak_rss_bytes = _peak_rss_bytes()
        system_ns = round((os.times().system - self._start_times.system) * 1e9)
        cpu_ns = clock.process_cpu_ns() - self._start_cpu_ns
        return Usage(
            start_unix_ns=self._start_unix_ns,
            wall_ns=clock.monotonic_ns() - self._start_ns,
            # The kernel tells the two apart in steps of 10 ms; their sum is exact.
            cpu_user_ns=max(cpu_ns - system_ns, 0),
            cpu_system_ns=min(system_ns, cpu_ns),
            peak_rss_bytes=self._peak_rss_bytes,
        )


def _peak_rss_bytes() -> int:
    # Not resource.getrusage: its maximum is inherited through exec from the shell's child.
    for line in read_file("/proc/self/status").splitlines():
        if line.startswith(b"VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0
