"""What an analyzer returns: one thing to change, its location, the evidence, the maximum gain.

Does not format numbers (`ui/`). Invariant: a finding is data; the same profile always gives the same
findings in the same order.
"""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from deepcontext.analyzers.experiment import experiment
from deepcontext.profiler.summaries.basis import Part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepcontext.profiler.model.profile_model import ProfileModel

SECTION: Final = "findings"
_LAYOUT: Final = 1
# A finding of at least this share of the profile's cost is worth an hour, or a day, of work.
_WARNING_SHARE: Final = 0.05
_HIGH_SHARE: Final = 0.25


class Severity(enum.StrEnum):
    """How much a finding matters, in ascending order."""

    INFO = "info"
    WARNING = "warning"
    HIGH = "high"

    @property
    def rank(self) -> int:
        """Position in ascending order, 0 for the lowest severity."""
        return list(Severity).index(self)

    @classmethod
    def of_share(cls, share: float) -> Severity:
        """Return the severity of a cost of this share (0 to 1) of the profile."""
        if share >= _HIGH_SHARE:
            return cls.HIGH
        return cls.WARNING if share >= _WARNING_SHARE else cls.INFO


class Confidence(enum.StrEnum):
    """How far the gain of a finding is known from measured fixes, in ascending order."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


@dataclass(frozen=True, slots=True)
class Gain:
    """The saving of a change: its maximum, and what fixes of the same kind saved.

    Attributes:
        metric: the saved metric, for example ``host_time_ns``.
        upper_bound: maximum saving, in the metric's unit.
        upper_bound_share: the same as a share of the profile's total of the metric, 0 to 1. This
            total excludes time outside operators, so the share of the elapsed time is smaller.
        assumption: assumption under which the bound holds; one sentence.
        run_share: the same as a share of the elapsed time of the finding's part of the run, or of the most
            memory that the process had, 0 to 1; None where such a share has no meaning.
            `analyzers.run_analyzers` fills it in.
        low: what a fix is expected to save at least, in the metric's unit; None where no fix of the
            analyzer was measured. `analyzers.run_analyzers` fills in `low` and `high`.
        high: what a fix is expected to save at most.
    """

    metric: str
    upper_bound: int
    upper_bound_share: float
    assumption: str
    run_share: float | None = None
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to change.

    Attributes:
        id: id of the analyzer.
        severity: how much the finding matters.
        title: one line that names the location and the problem.
        nodes: ids of the nodes that show the problem, the costliest first.
        evidence: measured values by name; a unit ends the name, shares (0 to 1) end in ``_share``.
        gain: maximum saving of a change, or None where the profile gives no bound.
        advice: what to do.
        misleads: when the advice is wrong.
        confidence: how far the gain is known from measured fixes.
        link: page of the framework's own documentation, "" without one.
        part: part of the run that the values and shares are of.
        steps: number of steps in this part by which values may be divided, 0 for none.
    """

    id: str
    severity: Severity
    title: str
    nodes: tuple[int, ...]
    evidence: Mapping[str, int | float | str] = field(default_factory=dict)
    gain: Gain | None = None
    advice: str = ""
    misleads: str = ""
    confidence: Confidence = Confidence.LOW
    link: str = ""
    part: Part = Part.RUN
    steps: int = 0

    @property
    def order(self) -> tuple[bool, bool, float, int, str, tuple[int, ...]]:
        """Key that sorts warnings before notes, set-up last among them, and a part's largest gain first."""
        gain = 0.0
        if self.gain is not None:
            share = self.gain.run_share
            gain = self.gain.upper_bound_share if share is None else share
        is_note = self.severity is Severity.INFO
        is_setup = self.part is Part.SETUP
        return (is_note, is_setup, -gain, -self.severity.rank, self.id, self.nodes)

    def to_dict(self, profile: ProfileModel) -> dict[str, Any]:
        """Return the finding in JSON's types, with the call path of its first node."""
        path = profile.path(self.nodes[0])[1:] if self.nodes else ()
        return {
            "id": self.id,
            "severity": self.severity.value,
            "title": self.title,
            "part": self.part.value,
            "steps": self.steps,
            "gain": None
            if self.gain is None
            else {
                "metric": self.gain.metric,
                "upper_bound": self.gain.upper_bound,
                "upper_bound_share": round(self.gain.upper_bound_share, 6),
                "run_share": None if self.gain.run_share is None else round(self.gain.run_share, 6),
                "low": self.gain.low,
                "high": self.gain.high,
                "assumption": self.gain.assumption,
            },
            "confidence": self.confidence.value,
            "experiment": experiment(profile, self.nodes),
            "advice": self.advice,
            "misleads": self.misleads,
            "link": self.link,
            "evidence": dict(self.evidence),
            "nodes": list(self.nodes),
            "call_path": [str(frame) for frame in path],
        }


def encode_section(findings: Sequence[Finding], profile: ProfileModel) -> bytes:
    """Return the payload of the profile's section "findings", JSON."""
    rows = [finding.to_dict(profile) for finding in findings]
    return json.dumps({"version": _LAYOUT, "findings": rows}, allow_nan=False).encode()
