"""What a fix is expected to save, from fixes that were measured, and how far to trust this.

A finding's bound assumes that the reported work costs nothing. Fixes of programs like those
in `tests/fault_pairs` saved a part of the bound; the table below has the smallest and the largest part for
each analyzer (`make gains` measures again and fails if a fix saves less). Does not judge whether a finding is
true, but says where a busy machine may have made it.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final, NamedTuple

from deepcontext.analyzers.finding import Confidence, Finding, Severity
from deepcontext.profiler.summaries.account import account
from deepcontext.profiler.summaries.basis import basis_of
from deepcontext.profiler.summaries.verdict import busy_machine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepcontext.profiler.model.profile import Profile


class MeasuredFixes(NamedTuple):
    """Fixes of the findings of one analyzer.

    Attributes:
        low: smallest part of the bound that a fix saved, 0 to 1.
        high: largest part.
        pairs: number of programs that were measured.
    """

    low: float
    high: float
    pairs: int


_SEVERAL: Final = 3
# Widened by a tenth of the bound on either side of what was measured, because one run was.
MEASURED: Final[Mapping[str, MeasuredFixes]] = {
    "kernel_fusion": MeasuredFixes(0.12, 1.0, 11),
    "cheaper_operator": MeasuredFixes(0.27, 1.0, 6),
    "forward_backward": MeasuredFixes(0.21, 1.0, 4),
    "copies": MeasuredFixes(0.12, 1.0, 7),
    "data_loading": MeasuredFixes(0.55, 1.0, 3),
    "host_work": MeasuredFixes(0.87, 1.0, 9),
    "settings": MeasuredFixes(0.33, 1.0, 6),
    "model_calls": MeasuredFixes(0.75, 1.0, 6),
    "precision": MeasuredFixes(0.4, 0.99, 2),
}


# Time until something else happens: other work on the machine prolongs it.
_OF_WAITS: Final = {
    "data_loading",
    "device_starvation",
    "rank_imbalance",
    "slow_steps",
    "straggler",
}


def doubted(finding: Finding, profile: Profile) -> Finding:
    """Return a finding that says so if the machine was too busy to be sure of it."""
    if finding.id not in _OF_WAITS:
        return finding
    share = busy_machine(account(basis_of(profile).profile))
    if not share:
        return finding
    busy = f"this machine was busy: the main thread waited for a processor {share:.0%} of the time"
    text = f"{finding.misleads}; {busy}" if finding.misleads else busy
    return dataclasses.replace(finding, misleads=text, confidence=Confidence.LOW)


def judged(finding: Finding) -> Finding:
    """Return a finding with its expected gain and the confidence in it."""
    measured = MEASURED.get(finding.id)
    if finding.gain is None or measured is None:
        return finding
    gain = dataclasses.replace(
        finding.gain,
        low=int(measured.low * finding.gain.upper_bound),
        high=int(measured.high * finding.gain.upper_bound),
    )
    is_question = finding.severity is Severity.INFO
    known = Confidence.HIGH if measured.pairs >= _SEVERAL else Confidence.MEDIUM
    confidence = Confidence.LOW if is_question else known
    return dataclasses.replace(finding, gain=gain, confidence=confidence)
