"""Measures: whose cost a view shows; a metric's total, or how often it was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.errors import QueryError
from deepcontext.profiler.elapsed import ELAPSED_TIME_NS
from deepcontext.profiler.metric import CALL_DURATION_NS, CPU_TIME_NS, Aggregation
from deepcontext.ui.web.answers import Measure

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from deepcontext.profiler.profile import Profile

_COUNT: Final = ".count"
_UPPER: Final = {"cpu": "CPU", "gpu": "GPU", "hlo": "HLO", "flops": "FLOPs", "flop": "FLOPs"}
_UNIT_ENDINGS: Final = ("_ns", "_bytes", "_count")


def measures(profile: Profile) -> list[Measure]:
    """Return what can be shown of a profile; only what adds up over a tree, the default first."""
    summed = [
        rows.descriptor
        for rows in profile.metrics.values()
        if rows.descriptor.aggregation is Aggregation.SUM
    ]
    # Time on the device matters more than on the host, but only host time is always there.
    first = (CPU_TIME_NS.name, ELAPSED_TIME_NS.name)
    summed.sort(key=lambda each: first.index(each.name) if each.name in first else len(first))
    totals = [
        Measure(each.name, metric_label(each.name), each.unit, each.description) for each in summed
    ]
    counts = [
        Measure(
            each.name + _COUNT,
            f"events of {metric_label(each.name)}",
            "count",
            f"number of events behind {each.name}",
        )
        for each in summed
        if each.name not in first and each.unit != "count"
    ]
    if CALL_DURATION_NS.name in profile.metrics:
        counts.insert(
            0,
            Measure(
                CALL_DURATION_NS.name + _COUNT,
                "calls",
                "count",
                "number of calls of operators and scopes",
            ),
        )
    return totals + counts


def measure_named(profile: Profile, key: str) -> Measure:
    """Return a measure by its key.

    Raises:
        QueryError: the profile has no such measure.
    """
    known = measures(profile)
    for measure in known:
        if measure.key == key:
            return measure
    names = ", ".join(measure.key for measure in known) or "none"
    raise QueryError(f"this profile has no measure '{key}'; it has: {names}")


def default_measure(profile: Profile) -> str:
    """Return the key of the measure to start with; that of CPU time when there is none at all."""
    known = measures(profile)
    return known[0].key if known else CPU_TIME_NS.name


def values_of(profile: Profile, key: str) -> npt.NDArray[np.int64]:
    """Return what each node costs by itself, shape (nodes,), int64.

    Raises:
        QueryError: the profile has no such measure.
    """
    measure_named(profile, key)
    if key.endswith(_COUNT):
        return profile.counts(key.removesuffix(_COUNT))
    return profile.exclusive(key)


def metric_of(measure: Measure) -> str | None:
    """Return the metric whose total a measure is, None for a number of events."""
    return None if measure.key.endswith(_COUNT) else measure.key


def metric_label(name: str) -> str:
    """Return ``CPU time`` for ``cpu_time_ns``."""
    for ending in _UNIT_ENDINGS:
        name = name.removesuffix(ending)
    return " ".join(_UPPER.get(word, word) for word in name.split("_"))
