"""Layers that compute in another type than their input's: each call converts there and back.

Does not judge or report (`copies.py`). Types are not recorded, so a function with two conversions a
call counts as such a layer. The remedy is one operator instead of the layer, not one conversion less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.operator_names import DEVICE_OR_TYPE, POINTWISE
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.query import Query

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

# Conversions for each call of a layer.
_THERE_AND_BACK: Final = 2


@dataclass(frozen=True, slots=True)
class ConvertingLayer:
    """One function, over all its calls.

    Attributes:
        function: name of the function.
        conversions: the conversions.
        whole: the conversions and the function's pointwise operators.
    """

    function: str
    conversions: source_locations.Location
    whole: source_locations.Location


def converting_layers(
    profile: Profile, copies: Query, operators: Query, least: float
) -> list[ConvertingLayer]:
    """Return the functions that convert there and back, the costliest conversions first.

    Args:
        profile: the profile.
        copies: copies called by Python code.
        operators: operators that are part of the model's work.
        least: functions whose conversions took less time are left out, ns.
    """
    metric = HOST_TIME_NS.name
    tree = profile.tree
    # A conversion to the type that a tensor already has calls nothing.
    has_children = tree.subtree_end > np.arange(len(tree)) + 1
    is_conversion = (
        copies.mask() & source_locations.operators(profile, DEVICE_OR_TYPE).mask() & has_children
    )
    conversions = [
        location
        for location in source_locations.by_function(Query(profile, is_conversion), metric, least)
        if location.frame is not None and location.frame.name != "<module>"
    ]
    if not conversions:
        return []
    pointwise = operators.mask() & source_locations.operators(profile, POINTWISE).mask()
    wholes = {
        _key(location): location
        for location in source_locations.by_function(
            Query(profile, is_conversion | pointwise), metric, least
        )
        if _conversions_a_call(profile, location, is_conversion) >= _THERE_AND_BACK
    }
    return [
        ConvertingLayer(_key(location)[1], location, wholes[_key(location)])
        for location in conversions
        if _key(location) in wholes
    ]


def _conversions_a_call(
    profile: Profile, location: source_locations.Location, is_conversion: source_locations.Mask
) -> float:
    """Return how many conversions there are for each call of a function's other operators."""
    nodes = np.array(location.nodes)
    converts = is_conversion[nodes]
    if converts.all() or CALL_DURATION_NS.name not in profile.metrics:
        return 0.0
    calls = profile.counts(CALL_DURATION_NS.name)[nodes]
    frame, parent = profile.tree.frame, profile.tree.parent
    # A line of a class counts once, even if the model has many layers of the class.
    at = frame[parent[nodes]].astype(np.int64) * len(profile.frames) + frame[nodes]
    _, line = np.unique(at[~converts], return_inverse=True)
    of_lines = np.sort(np.bincount(line, calls[~converts]))
    return float(calls[converts].sum() / max(of_lines[len(of_lines) // 2], 1))


def _key(location: source_locations.Location) -> tuple[str, str]:
    return (location.frame.file, location.frame.name) if location.frame else ("", "")
