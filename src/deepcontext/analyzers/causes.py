"""What the questions return, and how one cause becomes one finding.

Suppression happens here and nowhere else: causes come in the order of the catalogue, each claims the nodes
that it explains, and a cause whose cost is mostly claimed already is dropped. Does not search.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from deepcontext.analyzers import catalogue
from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.weight import TIMES, weighing
from deepcontext.profiler.model.metric_values import inclusive_or_zeros, total
from deepcontext.profiler.summaries.basis import Part, basis_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from deepcontext.analyzers.catalogue import Entry
    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.profile import Profile

    Mask = source_locations.Mask
    Value = int | float | str

ELAPSED: Final = "elapsed time"
HOST: Final = "host_time_ns"
_SHOWN: Final = 8
# Of a cause's cost, in nodes that earlier causes explain.
_EXPLAINED: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One reason for a cost.

    Attributes:
        key: entry of the catalogue.
        nodes: nodes with the cost, the costliest first.
        frame: the line of the program, None for code outside of it.
        metric: metric of the cost, or "elapsed time"; "" for a cause without a gain.
        value: the cost; `whole`: what its share refers to, 0 for the metric's total.
        saved: what a change saves at most, the value if not given.
        words: fields of the entry's texts, beside ``where``, ``share`` and ``value``.
        evidence: measured values, added to the value, its share and the number of calls.
        severity: default: by the share. The entry's limits hold for either.
        shown: nodes of the finding, if not the first ones.
        weights: cost of each of `nodes`, if not the metric with descendants.
        gain: the gain, where it is not a bound of `saved`.
        part: part of the run that the values are of; `answers.py` fills it in.
    """

    key: str
    nodes: Sequence[int]
    frame: Frame | None = None
    metric: str = ""
    value: int = 0
    whole: int = 0
    saved: int | None = None
    words: Mapping[str, object] = field(default_factory=dict)
    evidence: Mapping[str, Value] = field(default_factory=dict)
    severity: Severity | None = None
    shown: Sequence[int] = ()
    weights: Sequence[int] = ()
    gain: Gain | None = None
    part: Part = Part.RUN


def at_place(key: str, place: source_locations.Location, metric: str = HOST, **more: Any) -> Cause:
    """Return a cause at a line or function with the cost of a place."""
    evidence = {"calls_count": place.count, **more.pop("evidence", {})}
    found = {"nodes": place.nodes, "frame": place.frame, "metric": metric, "value": place.value}
    return Cause(key=key, evidence=evidence, **{**found, **more})


def one_each(profile: Profile, causes: Iterable[Cause]) -> list[Finding]:
    """Return the findings of the causes that no earlier cause explains."""
    entries, weigh, basis = catalogue.entries(), weighing(profile), basis_of(profile)
    claimed: dict[str, Mask] = {}
    found = []
    # A cause of the steady state explains the same cost in set-up.
    for cause in sorted(causes, key=lambda each: (each.part is Part.SETUP, entries[each.key].rank)):
        entry, part = entries[cause.key], basis.of(cause.part)
        if not _is_worth(part, cause, entry):
            continue
        kind = "time" if cause.metric in TIMES or not cause.metric else cause.metric
        mask = claimed.setdefault(kind, np.zeros(len(profile.tree), np.bool_))
        is_alone = entry.claims != "nothing"
        if is_alone and _is_explained(part, cause, mask):
            continue
        finding = weigh(finding_of(part, cause))
        found.append(finding)
        # What matters little explains nothing.
        if is_alone and finding.severity is not Severity.INFO:
            mask |= _claim(profile, cause, entry.claims)
    return found


def _is_worth(profile: Profile, cause: Cause, entry: Entry) -> bool:
    """Return whether a cost is as large as its entry asks; a cause without a metric always is."""
    if not cause.metric:
        return True
    least = entry.least_share * (cause.whole or total(profile, cause.metric))
    calls = cause.evidence.get("calls_count", entry.least_calls)
    return cause.value >= max(least, entry.least_cost, 1) and int(calls) >= entry.least_calls


def _is_explained(profile: Profile, cause: Cause, claimed: Mask) -> bool:
    nodes = np.asarray(cause.nodes, np.int64)
    if not len(nodes):
        return False
    metric = cause.metric if cause.metric in profile.metrics else HOST
    weights = np.asarray(
        cause.weights if len(cause.weights) else inclusive_or_zeros(profile, metric)[nodes]
    )
    if not weights.any():
        weights = np.ones(len(nodes), np.int64)
    return bool(weights[claimed[nodes]].sum() > _EXPLAINED * weights.sum())


def _claim(profile: Profile, cause: Cause, claims: str) -> Mask:
    nodes = np.asarray(cause.nodes, np.int64)
    mask = np.zeros(len(profile.tree), np.bool_)
    mask[nodes] = True
    if claims == "function":
        mask |= source_locations.in_functions_of(profile, nodes[:1])
    if claims == "line":
        mask |= source_locations.in_lines_of(profile, nodes[:1])
    return profile.tree.at_or_below(mask)


def finding_of(profile: Profile, cause: Cause) -> Finding:
    """Return a cause in the words of the catalogue."""
    entry = catalogue.entries()[cause.key]
    whole = cause.whole or total(profile, cause.metric) or 1
    share = min(cause.value / whole, 1.0)
    words = {
        "where": source_locations.location_text(profile, cause.frame),
        "share": share,
        "value": cause.value,
        **cause.words,
    }
    kind = cause.metric if cause.metric in profile.metrics else "time_ns"
    cost: dict[str, Value] = {kind: cause.value, "time_share": share} if cause.metric else {}
    if cause.metric and cause.metric not in TIMES:
        cost = {kind: cause.value, "peak_share": share}
    # Kernels and ranges have no calls.
    uncounted = {"calls_count"} if cause.evidence.get("calls_count") == 0 else set()
    evidence = {name: each for name, each in cause.evidence.items() if name not in uncounted}
    return Finding(
        id=entry.id,
        severity=_limited(cause.severity or Severity.of_share(share), entry),
        title=_of_part(entry.title.format_map(words), cause.part),
        nodes=tuple(int(each) for each in (cause.shown or cause.nodes)[:_SHOWN]),
        evidence={**cost, **evidence},
        gain=cause.gain or _gain(profile, cause, entry, whole),
        advice=entry.advice.format_map(words),
        misleads=entry.misleads.format_map(words),
        link=entry.link,
        part=cause.part,
    )


def _of_part(title: str, part: Part) -> str:
    """Return a title that names the part its share is of, where this is not the steady state or the run."""
    if part is not Part.SETUP:
        return title
    return title.replace("of the time in ", "of set-up's time in ").replace(
        "of the time", "of set-up"
    )


def _limited(severity: Severity, entry: Entry) -> Severity:
    lowest, highest = Severity(entry.least), Severity(entry.most)
    return min(max(severity, lowest, key=_rank), highest, key=_rank)


def _rank(severity: Severity) -> int:
    return severity.rank


def _gain(profile: Profile, cause: Cause, entry: Entry, whole: int) -> Gain | None:
    if not cause.metric or not entry.assumes:
        return None
    saved = cause.value if cause.saved is None else cause.saved
    assumes = entry.assumes.format_map(cause.words)
    if cause.metric in profile.metrics and not cause.whole:
        return source_locations.bound(profile, cause.metric, saved, assumes)
    saved = max(saved, 0)
    return Gain(cause.metric, saved, min(saved / whole, 1.0), assumes)
