"""Values of a metric that a profile may lack: zeros where the metric is missing.

`ProfileModel.exclusive` raises on an unknown metric, because a user who names one made a mistake.
A summary asks for metrics that a run may or may not have measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deepcontext.errors import QueryError
from deepcontext.profiler.format.metric import Aggregation

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

    Ints = npt.NDArray[np.int64]


def exclusive_or_zeros(profile: Profile, metric: str) -> Ints:
    """Return the metric of each node without its descendants, shape (nodes,), int64."""
    return profile.exclusive(metric) if metric in profile.metrics else _zeros(profile)


def inclusive_or_zeros(profile: Profile, metric: str) -> Ints:
    """Return the metric of each node with its descendants, shape (nodes,), int64."""
    return profile.inclusive(metric) if metric in profile.metrics else _zeros(profile)


def counts_or_zeros(profile: Profile, metric: str) -> Ints:
    """Return the number of events of each node, shape (nodes,), int64."""
    return profile.counts(metric) if metric in profile.metrics else _zeros(profile)


def total(profile: Profile, metric: str) -> int:
    """Return the sum of the metric over all nodes; summed once, because most findings ask."""
    return profile.once(("total", metric), lambda: _total(profile, metric))


def summed(profile: Profile, metric: str) -> Ints:
    """Return the exclusive values of a metric that adds up over nodes, shape (nodes,), int64.

    Raises:
        QueryError: the profile has no such metric, or it describes single nodes.
    """
    values = profile.exclusive(metric)
    if profile.metrics[metric].descriptor.aggregation is not Aggregation.SUM:
        known = [
            name
            for name, rows in profile.metrics.items()
            if rows.descriptor.aggregation is Aggregation.SUM
        ]
        raise QueryError(
            f"metric '{metric}' describes single nodes and cannot be summed; "
            f"metrics that can: {', '.join(sorted(known)) or 'none'}"
        )
    return values


def _total(profile: Profile, metric: str) -> int:
    if metric not in profile.metrics:
        return 0
    rows = profile.metrics[metric]
    return int(rows.values().sum())


def _zeros(profile: Profile) -> Ints:
    return np.zeros(len(profile.tree), np.int64)
