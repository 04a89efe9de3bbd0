"""Whether a changed program saves what the findings of its first profile promised.

Compares two profiles of one program: which findings are gone, and what was saved of each kind of cost,
against the sum of the expected gains of the findings that are gone. Does not run the program.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepcontext.analyzers.experiment import user_frame
from deepcontext.analyzers.weight import TIMES
from deepcontext.profiler.model.metric_values import total
from deepcontext.profiler.summaries.account import account
from deepcontext.profiler.summaries.basis import Part, basis_of, comparable
from deepcontext.profiler.summaries.setup_time import setup_time
from deepcontext.profiler.summaries.steps import step_count
from deepcontext.profiler.summaries.verdict import busy_machine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.analyzers.finding import Finding
    from deepcontext.profiler.model.profile import Profile

# Two runs of one program differ by a few hundredths.
_NOISE: Final = 0.05
ELAPSED: Final = "elapsed time"


class Verdict(enum.StrEnum):
    """How what was saved compares with what was promised."""

    INSIDE = "inside"
    BELOW = "below"
    ABOVE = "above"
    UNCERTAIN = "uncertain"  # below, and other work had the processors meanwhile
    UNKNOWN = "unknown"  # no finding that is gone had an expected gain


@dataclass(frozen=True, slots=True)
class Saving:
    """What was saved of one cost.

    Attributes:
        metric: ``elapsed time`` (without importing and compiling), or a metric of memory.
        per: "step" or "run".
        before: the cost for each step, or of the run, in ns or bytes.
        after: the same of the changed program.
        share: what was saved as a share of `before`; negative if the cost grew.
        low: expected share of the findings that are gone, at least.
        high: expected share, at most.
        verdict: whether `share` is between `low` and `high`, up to the noise of two runs.
    """

    metric: str
    per: str
    before: float
    after: float
    share: float
    low: float
    high: float
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Verification:
    """A changed program against the findings of its first profile.

    Attributes:
        gone: findings of the first profile that the second does not have.
        remaining: findings that both have.
        fresh: findings of the second alone.
        savings: what was saved, time first.
    """

    gone: tuple[Finding, ...]
    remaining: tuple[Finding, ...]
    fresh: tuple[Finding, ...]
    savings: tuple[Saving, ...]

    @property
    def holds(self) -> bool:
        """Return whether a finding is gone and no cost was saved less than promised."""
        return bool(self.gone) and all(each.verdict is not Verdict.BELOW for each in self.savings)


def verify(
    before: tuple[Profile, Sequence[Finding]], after: tuple[Profile, Sequence[Finding]]
) -> Verification:
    """Compare a profile and its findings with those of the changed program."""
    keys_before = [_key(before[0], each) for each in before[1]]
    keys_after = [_key(after[0], each) for each in after[1]]
    pairs = list(zip(before[1], keys_before, strict=True))
    gone = tuple(each for each, key in pairs if key not in keys_after)
    metrics = dict.fromkeys([ELAPSED, *(_cost(each) for each in gone)])
    runs = comparable(before[0], after[0])
    savings = [_saving(*runs, gone, metric) for metric in metrics if metric]
    return Verification(
        gone=gone,
        remaining=tuple(each for each, key in pairs if key in keys_after),
        fresh=tuple(
            each for each, key in zip(after[1], keys_after, strict=True) if key not in keys_before
        ),
        savings=tuple(each for each in savings if each is not None),
    )


def _key(profile: Profile, finding: Finding) -> tuple[str, str, str]:
    """Return what stays of a finding when lines move: its analyzer, file and function."""
    frame = user_frame(profile, finding.nodes)
    return (finding.id, frame.file, frame.name) if frame else (finding.id, "", "")


def _cost(finding: Finding) -> str:
    """Return the cost that a finding promises to save, "" without a gain."""
    if finding.gain is None:
        return ""
    return ELAPSED if finding.gain.metric in TIMES else finding.gain.metric


def _saving(before: Profile, after: Profile, gone: Sequence[Finding], metric: str) -> Saving | None:
    whole, left = _total(before, metric), _total(after, metric)
    if not whole:
        return None
    steps = (step_count(before), step_count(after)) if metric == ELAPSED else (0, 0)
    per, counts = ("step", steps) if all(steps) else ("run", (1, 1))
    share = 1 - (left / counts[1]) / (whole / counts[0])
    is_steady = basis_of(before).part is Part.STEADY
    # A step of the steady state has no set-up.
    promised = [
        (each.gain, (each.steps or counts[0]) if per == "step" else 1)
        for each in gone
        if each.gain is not None
        and _cost(each) == metric
        and not (is_steady and each.part is Part.SETUP and metric == ELAPSED)
    ]
    verdict = Verdict.UNKNOWN
    is_known = bool(promised) and all(gain.low is not None for gain, _ in promised)
    each_ns = whole / counts[0]
    low = sum((gain.low or 0) / number for gain, number in promised) / each_ns
    high = min(sum((gain.high or 0) / number for gain, number in promised) / each_ns, 1.0)
    if is_known:
        verdict = _verdict(share, low, high)
    if verdict is Verdict.BELOW and metric == ELAPSED and (_is_busy(before) or _is_busy(after)):
        verdict = Verdict.UNCERTAIN
    return Saving(
        metric=metric,
        per=per,
        before=whole / counts[0],
        after=left / counts[1],
        share=share,
        low=low,
        high=high,
        verdict=verdict,
    )


def _total(profile: Profile, metric: str) -> int:
    if metric != ELAPSED:
        return total(profile, metric)
    time = setup_time(profile)
    return time.working_ns if time is not None else profile.run.wall_ns


def _is_busy(profile: Profile) -> bool:
    return busy_machine(account(profile)) > 0


def _verdict(share: float, low: float, high: float) -> Verdict:
    if share < low - _NOISE:
        return Verdict.BELOW
    return Verdict.ABOVE if share > high + _NOISE else Verdict.INSIDE
