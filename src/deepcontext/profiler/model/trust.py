"""The trust report: what was received, matched and lost, and what the profiler itself cost.

Does not decide how a view shows it. Every profile carries one; a person must be able to tell from
it whether a number that looks like zero was measured or missed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deepcontext.profiler.format.status import Status

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class CollectorReport:
    """What one collector did.

    Attributes:
        name: name of the collector, for example ``torch``.
        status: how it fared.
        reason: why it did not fully run, as a person reads it; "" where it ran.
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
        collectors: one report a collector, in the order they started.
        counters: number of records by what became of them (received, matched, dropped, ...).
        hook_cost_ns_per_event: what one event cost the program, in ns, measured in this process;
            None where it was not measured.
        notes: warnings a person must read, most important first.
    """

    collectors: tuple[CollectorReport, ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    hook_cost_ns_per_event: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What every view shows first: the notes, and which collector saw less than asked for."""
        lacking = (
            f"{collector.name}: {collector.status}, {collector.reason or 'no reason given'}"
            for collector in self.collectors
            if collector.status in {Status.DEGRADED, Status.UNAVAILABLE}
        )
        return (*self.notes, *lacking)
