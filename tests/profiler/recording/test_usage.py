"""The measured time of a run begins when time is charged, which may be before the measurement is made."""

from __future__ import annotations

from deepcontext.profiler.recording import clock
from deepcontext.profiler.recording.usage import ProcessUsage

SECOND_NS = 1_000_000_000


def test_the_elapsed_time_begins_where_time_is_charged() -> None:
    begin_ns = clock.monotonic_ns() - SECOND_NS
    unix_ns = clock.unix_ns() - SECOND_NS
    usage = ProcessUsage(begin_ns)
    assert usage.read().wall_ns >= SECOND_NS
    assert abs(usage.read().start_unix_ns - unix_ns) < SECOND_NS / 2
    usage.freeze(begin_ns + 5)
    assert usage.read().wall_ns == 5
