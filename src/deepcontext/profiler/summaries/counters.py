"""By how much counters of the processor and the kernel increased, by source line.

Knows the counters by name; the collector finds out whether they can be read. Invariant: the counts
of all lines add up to at most the metrics' totals over the tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deepcontext.profiler.format.counter_names import COUNTERS, CYCLES, INSTRUCTIONS
from deepcontext.profiler.model.place import Place
from deepcontext.profiler.summaries.lines import UserLines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepcontext.profiler.format.metric import MetricDescriptor
    from deepcontext.profiler.model.profile_model import ProfileModel as Profile


@dataclass(frozen=True, slots=True)
class LineCounts(Place):
    """Increase of the counters at one line of the user's code, including what the line calls.

    Attributes:
        counts: by name of the metric, without deeper lines of the user's code.
    """

    counts: Mapping[str, int]

    @property
    def instructions_per_cycle(self) -> float | None:
        """Instructions per cycle; None unless both counters were recorded."""
        cycles = self.counts.get(CYCLES.name)
        instructions = self.counts.get(INSTRUCTIONS.name)
        return instructions / cycles if cycles and instructions is not None else None


def counted(profile: Profile) -> tuple[MetricDescriptor, ...]:
    """Return the counters that the profile has, in the order of `COUNTERS`."""
    return tuple(metric for metric in COUNTERS.values() if metric.name in profile.metrics)


def counter_name(metric: MetricDescriptor) -> str:
    """Return the name of a metric's counter on the command line."""
    return next(name for name, each in COUNTERS.items() if each.name == metric.name)


def by_line(profile: Profile, limit: int = 0) -> tuple[tuple[LineCounts, ...], int]:
    """Return the counts of each line of the user's code, and the number of such lines.

    Ordered by the first recorded counter, in the order of `COUNTERS`; `limit` 0 returns all lines.
    """
    metrics = counted(profile)
    if not metrics:
        return (), 0
    lines = UserLines.of(profile)
    columns = [lines.sums(profile.exclusive(metric.name)) for metric in metrics]
    order = lines.largest(*columns)
    rows = []
    for index in order[: limit or None].tolist():
        counts = {m.name: int(c[index]) for m, c in zip(metrics, columns, strict=True)}
        rows.append(LineCounts.at(lines.frame_of(profile, index), counts))
    return tuple(rows), len(order)
