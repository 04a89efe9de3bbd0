"""The trust report: what was received, matched and lost, and the profiler's overhead.

Does not decide how a view shows the report. Every profile carries a trust report; it must tell a
reader whether a zero was measured or missed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format.status import Status

if TYPE_CHECKING:
    from collections.abc import Mapping


# Name of the entry that says from which file of another tool a profile was read.
READ_FROM: Final = "read from"


@dataclass(frozen=True, slots=True)
class CollectorReport:
    """What one collector did.

    Attributes:
        name: name of the collector, for example ``torch``.
        status: whether the collector ran.
        reason: why the collector did not fully run, for a reader; "" where it ran.
        details: facts by name, units ending the names.
    """

    name: str
    status: Status
    reason: str = ""
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TrustReport:
    """How far the numbers of a profile can be trusted.

    Attributes:
        collectors: one report for each collector, in the order they started.
        counters: number of records by outcome (received, matched, dropped, ...).
        hook_cost_ns_per_event: overhead of one event for the program, in ns, measured in this
            process; None where not measured.
        notes: warnings a reader must see, most important first.
    """

    collectors: tuple[CollectorReport, ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    hook_cost_ns_per_event: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def read_from(self) -> CollectorReport | None:
        """What is said of the file of another tool that was read; None for a recorded profile."""
        return next((each for each in self.collectors if each.name == READ_FROM), None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What every view shows first: the notes, and the collectors that did not fully run."""
        lacking = (
            f"{collector.name}: {collector.status}, {collector.reason or 'no reason given'}"
            for collector in self.collectors
            if collector.status in {Status.DEGRADED, Status.UNAVAILABLE}
        )
        return (*self.notes, *lacking)
