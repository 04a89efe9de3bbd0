"""The trust reports of many ranks in one: counters added, and each text with the ranks that have it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format.status import Status
from deepcontext.profiler.model.trust import CollectorReport, TrustReport

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Ranks = tuple[int, ...]

# "off" counts as the mildest status, because a collector that is off on one rank is no fault.
_BY_FAULT: Final = (Status.OFF, Status.RAN, Status.DEGRADED, Status.UNAVAILABLE)
_MOST_TEXTS: Final = 20
_MOST_RANGES: Final = 4
_PLURAL: Final = {"rank": "ranks", "process": "processes"}


@dataclass(frozen=True, slots=True)
class CollectorSums:
    """What one collector did on each rank.

    Attributes:
        ranks: ranks by status and reason, ascending.
        details: facts that are equal on all ranks.
    """

    ranks: Mapping[tuple[str, str], Ranks]
    details: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TrustSums:
    """Trust reports of some ranks.

    Attributes:
        counters: sums of the counters.
        notes: ranks by note, ascending.
        collectors: by name of the collector.
        hook_cost_ps: sum of the costs of one event, rounded to 0.001 ns, so that sums are exact.
        hook_costs: number of ranks that measured this cost.
    """

    counters: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, Ranks] = field(default_factory=dict)
    collectors: Mapping[str, CollectorSums] = field(default_factory=dict)
    hook_cost_ps: int = 0
    hook_costs: int = 0

    @classmethod
    def of(cls, trust: TrustReport, rank: int) -> TrustSums:
        """Return the report of one rank."""
        cost = trust.hook_cost_ns_per_event
        return cls(
            dict(trust.counters),
            dict.fromkeys(trust.notes, (rank,)),
            {
                each.name: CollectorSums(
                    {(each.status.value, each.reason): (rank,)}, dict(each.details)
                )
                for each in trust.collectors
            },
            0 if cost is None else round(cost * 1000),
            0 if cost is None else 1,
        )

    def bounded(self, most: int) -> TrustSums:
        """Return the sums with the `most` notes that most ranks have."""
        if len(self.notes) <= most:
            return self
        kept = sorted(self.notes, key=lambda note: (-len(self.notes[note]), note))[:most]
        notes = {note: self.notes[note] for note in kept}
        return TrustSums(self.counters, notes, self.collectors, self.hook_cost_ps, self.hook_costs)

    def report(self, ranks: int, first: Sequence[str], *, of: str = "rank") -> TrustReport:
        """Return one report for all ranks.

        Args:
            ranks: number of ranks.
            first: notes about the job as a whole.
            of: what the numbers count: ``rank`` or ``process``.
        """
        cost = self.hook_cost_ps / 1000 / self.hook_costs if self.hook_costs else None
        return TrustReport(
            tuple(self._collector(name, ranks, of) for name in sorted(self.collectors)),
            dict(sorted(self.counters.items())),
            cost,
            (*first, *_texts(self.notes, ranks, of)),
        )

    def _collector(self, name: str, ranks: int, what: str) -> CollectorReport:
        sums = self.collectors[name]
        status = max((Status(status) for status, _ in sums.ranks), key=_BY_FAULT.index)
        reasons: dict[str, Ranks] = {}
        for (_, reason), of in sorted(sums.ranks.items()):
            if reason:
                reasons[reason] = tuple(sorted({*reasons.get(reason, ()), *of}))
        details = dict(sorted(sums.details.items()))
        return CollectorReport(name, status, "; ".join(_texts(reasons, ranks, what)), details)


def join_trust(found: Sequence[TrustSums]) -> TrustSums:
    """Return the trust of the ranks of all."""
    counters: Counter[str] = Counter()
    for each in found:
        counters.update(each.counters)
    names = {name for each in found for name in each.collectors}
    return TrustSums(
        dict(counters),
        _joined([each.notes for each in found]),
        {
            name: _join_collectors([
                each.collectors[name] for each in found if name in each.collectors
            ])
            for name in names
        },
        sum(each.hook_cost_ps for each in found),
        sum(each.hook_costs for each in found),
    )


def ranks_text(ranks: Iterable[int], what: str = "rank") -> str:
    """Return ``"rank 3"``, or ``"ranks 0-7, 9"``; more than four ranges are counted."""
    several = _PLURAL[what]
    ranges = ranges_of(ranks)
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in ranges]
    if len(texts) == 1 and ranges[0][0] == ranges[0][1]:
        return f"{what} {texts[0]}"
    if len(texts) > _MOST_RANGES:
        count = sum(last - first + 1 for first, last in ranges)
        return f"{count} {several} ({', '.join(texts[:_MOST_RANGES])}, ...)"
    return f"{several} {', '.join(texts)}"


def ranges_of(ranks: Iterable[int]) -> list[list[int]]:
    """Return ascending numbers as ranges of first and last."""
    ranges: list[list[int]] = []
    for rank in ranks:
        if ranges and ranges[-1][1] == rank - 1:
            ranges[-1][1] = rank
        else:
            ranges.append([rank, rank])
    return ranges


def _joined(found: Sequence[Mapping[str, Ranks]]) -> dict[str, Ranks]:
    ranks: dict[str, list[int]] = {}
    for each in found:
        for text, of in each.items():
            ranks.setdefault(text, []).extend(of)
    return {text: tuple(sorted(of)) for text, of in ranks.items()}


def _join_collectors(found: Sequence[CollectorSums]) -> CollectorSums:
    ranks: dict[tuple[str, str], list[int]] = {}
    for each in found:
        for outcome, of in each.ranks.items():
            ranks.setdefault(outcome, []).extend(of)
    details = dict(found[0].details)
    for each in found[1:]:
        details = {key: text for key, text in details.items() if each.details.get(key) == text}
    return CollectorSums({outcome: tuple(sorted(of)) for outcome, of in ranks.items()}, details)


def _texts(ranks_of: Mapping[str, Ranks], ranks: int, what: str) -> list[str]:
    """Return the texts that most ranks have, with their ranks unless all have the text."""
    order = sorted(ranks_of, key=lambda text: (-len(ranks_of[text]), ranks_of[text], text))
    texts = [
        text if len(ranks_of[text]) == ranks else f"{ranks_text(ranks_of[text], what)}: {text}"
        for text in order[:_MOST_TEXTS]
    ]
    left = len(order) - len(texts)
    more = f"{left} more texts of single {_PLURAL[what]} are in their profiles"
    return [*texts, more] if left else texts
