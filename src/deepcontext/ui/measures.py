"""Measures: the quantities a view can display: a metric's total, or its number of events.

Serves the page and the exports.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepcontext.errors import QueryError
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.elapsed import ELAPSED_TIME_NS
from deepcontext.profiler.summaries.measures import summed_metrics
from deepcontext.ui.labels import metric_label

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from deepcontext.profiler.model.profile import Profile

_COUNT: Final = ".count"
# The number of events of these metrics counts samples of the profiler, not events of the program.
_SAMPLED: Final = ("sampled_", "peak_", "gpu_peak_", "jax_peak_")

_GROUP_OF_UNIT: Final = {"bytes": "Memory", "count": "Counts", "flop": "Work"}
# Words in names of times.
_WAITS: Final = frozenset({"wait", "ready", "sleep", "delay"})
_BY_LINE: Final = _WAITS | {"idle", "peak"}
_OF_GPU: Final = ("gpu_", "device_", "nccl_")
_EVENTS: Final = {
    "alloc_bytes": "allocations",
    "gpu_alloc_bytes": "GPU allocations",
    "copy_bytes": "copies",
    "transfer_bytes": "transfers",
}


@dataclass(frozen=True, slots=True)
class Measure:
    """A quantity that a view can show: the total of a metric, or the number of its events.

    `group` is the heading that a list of measures puts it under. `by_line`: a tree shows it by line
    unless the user decides otherwise, because it lies between operators, where only a line says what
    the program did, or because it is memory at the peak, which is changed where a line allocates it.
    """

    key: str
    label: str
    unit: str
    description: str
    group: str
    by_line: bool = False


def measures(profile: Profile) -> list[Measure]:
    """Return the measures of a profile that add up over a tree, the default first."""
    summed = summed_metrics(profile)
    totals = [
        Measure(
            each.name,
            metric_label(each.name),
            each.unit,
            each.description,
            _group(each.name, each.unit),
            _is_by_line(each.name),
        )
        for each in summed
    ]
    counts = [
        Measure(
            each.name + _COUNT,
            _EVENTS.get(each.name, f"events of {metric_label(each.name)}"),
            "count",
            f"number of events behind {each.name}",
            "Counts",
        )
        for each in summed
        if each.name not in {HOST_TIME_NS.name, ELAPSED_TIME_NS.name}
        and each.unit != "count"
        and not each.name.startswith(_SAMPLED)
    ]
    if CALL_DURATION_NS.name in profile.metrics:
        counts.insert(
            0,
            Measure(
                CALL_DURATION_NS.name + _COUNT,
                "calls",
                "count",
                "number of calls of operators and scopes",
                "Counts",
            ),
        )
    return totals + counts


def _is_by_line(name: str) -> bool:
    return name.startswith("sampled_") or not _BY_LINE.isdisjoint(name.split("_"))


def _group(name: str, unit: str) -> str:
    if unit in _GROUP_OF_UNIT:
        return _GROUP_OF_UNIT[unit]
    if any(word in _WAITS for word in name.split("_")):
        return "Waiting"
    return "GPU" if name.startswith(_OF_GPU) else "Time"


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


def values_of(profile: Profile, key: str) -> npt.NDArray[np.int64]:
    """Return the exclusive value of each node, shape (nodes,), int64.

    Raises:
        QueryError: the profile has no such measure.
    """
    measure_named(profile, key)
    if key.endswith(_COUNT):
        return profile.counts(key.removesuffix(_COUNT))
    return profile.exclusive(key)


def metric_of(measure: Measure) -> str | None:
    """Return the metric of a measure that is a total, None for a number of events."""
    return None if measure.key.endswith(_COUNT) else measure.key
