"""Whether a collector ran, and why not: written by a session, read from a profile's trust report."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


# A note of an Outcome that begins with this makes the run fail under `--strict`.
ERROR_MARK: Final = "error: "


class Status(enum.StrEnum):
    """Whether a collector ran."""

    RAN = "ran"
    DEGRADED = "degraded"
    UNAVAILABLE = "unavailable"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a collector, for the trust report.

    Attributes:
        status: whether the collector ran.
        reason: why the collector did not run, or ran only in part.
        details: figures and versions a reader may want, by name.
        counters: numbers of records by outcome, added to the counters of the trust report.
        notes: what a reader must know before trusting the figures.
    """

    status: Status
    reason: str = ""
    details: Mapping[str, str | int | float] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
