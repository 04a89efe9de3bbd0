"""How a collector fared: written by a session, read from a profile's trust report."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


# Notes of an Outcome that begin so make a profile an error under `--strict`.
ERROR_MARK: Final = "error: "


class Status(enum.StrEnum):
    """How a collector fared."""

    RAN = "ran"
    DEGRADED = "degraded"
    UNAVAILABLE = "unavailable"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a collector, for the trust report.

    Attributes:
        status: how it fared.
        reason: why it did not run, or ran in part.
        details: figures and versions a reader may want, by name.
        counters: records by what became of them, added to those of the trust report.
        notes: what a person must know before trusting the figures.
    """

    status: Status
    reason: str = ""
    details: Mapping[str, str | int | float] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
