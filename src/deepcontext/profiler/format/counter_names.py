"""Which counters there are: their names on the command line, and their metrics.

Imports nothing that a program under test might not want. Whether they can be read is the
collector's to find out; what they rose by at which line is `summaries/counters.py`'s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format.metric import Aggregation, MetricDescriptor

if TYPE_CHECKING:
    from collections.abc import Mapping


def _counter(name: str, description: str) -> MetricDescriptor:
    return MetricDescriptor(name, "count", Aggregation.SUM, f"{description}, read at samples")


CYCLES: Final = _counter("cycle_count", "cycles of the processor")
INSTRUCTIONS: Final = _counter("instruction_count", "instructions that the processor finished")
# By the names that perf(1) has for them.
COUNTERS: Final[Mapping[str, MetricDescriptor]] = {
    "cycles": CYCLES,
    "instructions": INSTRUCTIONS,
    "cache-misses": _counter("cache_miss_count", "accesses that missed the last cache"),
    "branch-misses": _counter("branch_miss_count", "branches that were predicted wrongly"),
    "page-faults": _counter("page_fault_count", "first uses of a page, and pages read in"),
    "context-switches": _counter("context_switch_count", "times that a thread gave its CPU away"),
}
COUNTER_NAMES: Final = tuple(COUNTERS)
