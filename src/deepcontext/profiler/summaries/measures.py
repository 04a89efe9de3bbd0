"""Which metrics a view can show, and which metric is the default.

One rule for the report, the comparison, the page and the exports. Does not label or format metrics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format.metric import (
    DEVICE_TIME_NS,
    GPU_TIME_NS,
    HOST_TIME_NS,
    Aggregation,
)
from deepcontext.profiler.model.elapsed import ELAPSED_TIME_NS
from deepcontext.profiler.model.metric_table import MetricTable
from deepcontext.profiler.summaries.account import account
from deepcontext.profiler.summaries.operators import operator_time
from deepcontext.profiler.summaries.verdict import gpu_leads

if TYPE_CHECKING:
    from deepcontext.profiler.format.metric import MetricDescriptor
    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

# The most useful metrics, in this order; others follow in the order of the profile.
_FIRST: Final[tuple[str, ...]] = (
    HOST_TIME_NS.name,
    GPU_TIME_NS.name,
    DEVICE_TIME_NS.name,
    ELAPSED_TIME_NS.name,
)


def summed_metrics(profile: Profile) -> tuple[MetricDescriptor, ...]:
    """Return the metrics that add up over the tree, the default metric first."""
    summed = _summed(profile)
    first = default_metric(profile)
    return tuple(
        sorted(summed, key=lambda each: (each.name != first, _place(each.name)))  # stable
    )


def default_metric(*profiles: Profile) -> str:
    """Return GPU time where the GPU is the limit, else the first of `_FIRST` with a value other than 0.

    `HOST_TIME_NS` is a candidate only where operators ran: the time of a program that opened only
    scopes is in `ELAPSED_TIME_NS`. All profiles must have the metric, and at least one a value.
    """
    shared = [
        each.name
        for each in _summed(profiles[0])
        if all(each.name in profile.metrics for profile in profiles)
    ]
    if GPU_TIME_NS.name in shared and all(gpu_leads(account(profile)) for profile in profiles):
        return GPU_TIME_NS.name
    is_host = HOST_TIME_NS.name in shared and any(map(operator_time, profiles))
    candidates = (*(_FIRST if is_host else _FIRST[1:]), *shared)
    for name in candidates:
        if name in shared and any(profile.metrics[name].total.any() for profile in profiles):
            return name
    return HOST_TIME_NS.name


def _summed(profile: Profile) -> list[MetricDescriptor]:
    described = MetricTable.of(profile.metrics).descriptors()
    return [each for each in described if each.aggregation is Aggregation.SUM]


def _place(name: str) -> int:
    return _FIRST.index(name) if name in _FIRST else len(_FIRST)
