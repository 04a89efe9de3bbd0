"""Counters that samples can read: their names on the command line, and their metrics.

Standard library only. The collector finds out which counters can be read here;
`summaries/counters.py` says at which lines they rose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format.metric import Aggregation, MetricDescriptor

if TYPE_CHECKING:
    from collections.abc import Mapping


def _counter(name: str, description: str) -> MetricDescriptor:
    return MetricDescriptor(name, "count", Aggregation.SUM, f"{description}, read at samples")


CYCLES: Final = _counter("cycle_count", "processor cycles")
INSTRUCTIONS: Final = _counter("instruction_count", "instructions that the processor completed")
# The names are those of perf(1).
COUNTERS: Final[Mapping[str, MetricDescriptor]] = {
    "cycles": CYCLES,
    "instructions": INSTRUCTIONS,
    "cache-misses": _counter("cache_miss_count", "accesses that missed the last-level cache"),
    "branch-misses": _counter("branch_miss_count", "mispredicted branches"),
    "page-faults": _counter("page_fault_count", "first uses of a page, and pages read in"),
    "context-switches": _counter("context_switch_count", "times that a thread gave up its CPU"),
}
COUNTER_NAMES: Final = tuple(COUNTERS)
