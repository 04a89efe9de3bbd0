"""Parts of results that keep the whole results: a view holds all memory of its tensor.

A profile does not record which tensor is a view of which. Recognised is a function that calls a module and
takes a part of a tensor as often, while one allocation of each call of the module is alive at the peak.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.called_operators import has_called_module
from deepcontext.analyzers.shared.model_runs import Functions, Model, functions_of, models
from deepcontext.profiler.format.metric import HOST_TIME_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros, exclusive_or_zeros
from deepcontext.profiler.model.query import Query

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_VIEWS: Final = frozenset(
    f"aten::{name}" for name in ("select", "slice", "narrow", "split", "chunk", "unbind")
)
_LEAST_CALLS: Final = 10
# Of the peak, in one allocation of each call.
_LEAST_SHARE: Final = 0.5
# Of the calls: the result of the call that runs may not be kept yet.
_LEAST_KEPT: Final = 0.9


def kept_views(profile: Profile, prefix: str, peak: int) -> list[Finding]:
    """Return a finding for each module whose results are all held, while a part of each is taken.

    Args:
        profile: the profile.
        prefix: "" for the memory of the host, "gpu_" for that of devices.
        peak: most bytes held at once.
    """
    metric = f"{prefix}peak_bytes"
    if metric not in profile.metrics or HOST_TIME_NS.name not in profile.metrics:
        return []
    if not has_called_module(profile, metric, _LEAST_SHARE * peak):
        return []
    functions = functions_of(profile)
    found = []
    for model in models(profile, functions.of_node, _LEAST_SHARE * peak, metric):
        if model.has_backward or model.calls < _LEAST_CALLS:
            continue
        held = _held_of_each_call(profile, metric, model)
        taken = functions.count(_VIEWS, model.function)
        if held >= _LEAST_SHARE * peak and taken >= _LEAST_KEPT * model.calls:
            found.append(_finding(profile, metric, functions, model, (held, peak)))
    return found


def _held_of_each_call(profile: Profile, metric: str, model: Model) -> int:
    """Return the most bytes at the peak of one allocation that is alive for each call of a module."""
    inside = slice(model.node, int(profile.tree.subtree_end[model.node]))
    pieces = counts_or_zeros(profile, metric)[inside]
    held = exclusive_or_zeros(profile, metric)[inside]
    is_kept = (pieces >= _LEAST_KEPT * model.calls) & (pieces <= model.calls)
    return int(np.where(is_kept, held, 0).max(initial=0))


def _finding(
    profile: Profile, metric: str, functions: Functions, model: Model, bytes_held: tuple[int, int]
) -> Finding:
    held, peak = bytes_held
    views = source_locations.operators(profile, _VIEWS).mask() & functions.called
    views &= functions.of_node == model.function
    lines = source_locations.by_line(Query(profile, views), HOST_TIME_NS.name)
    location = max(lines, key=lambda each: each.count)
    name = profile.frame(model.node).name
    share = min(held / peak, 1.0)
    return Finding(
        id="memory",
        severity=Severity.HIGH,
        title=(
            f"all {model.calls} results of {name} are held at the peak, {share:.0%} of the memory, where "
            f"{source_locations.location_text(profile, location.frame)} takes a part of each"
        ),
        nodes=(*location.nodes[:4], model.node),
        evidence={metric: held, "peak_share": share, "calls_count": model.calls},
        gain=Gain(metric, held, share, "only the parts are held"),
        advice=(
            "keep a copy of the part (result[:, 0].clone()): a slice is a view, which holds all memory of "
            "the tensor it was taken from"
        ),
        misleads="the whole results are kept on purpose, and the part is for something else",
    )
