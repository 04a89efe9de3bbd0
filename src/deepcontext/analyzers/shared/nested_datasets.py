"""Datasets that wrap each other many levels deep, so that each sample passes through all of them.

Recognised by functions that fetch samples and are nested in themselves on one path. Needs samples; does not
look into a loader's workers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.model.elapsed import ELAPSED_TIME_NS, is_sampled
from deepcontext.profiler.model.metric_values import exclusive_or_zeros
from deepcontext.profiler.model.tree import NO_NODE

if TYPE_CHECKING:
    from deepcontext.analyzers.shared import source_locations
    from deepcontext.profiler.model.profile import Profile

# A few wrappers of one kind (a subset of a subset) are usual, and cost little.
_LEAST_LEVELS: Final = 8
# Of the time in which batches are made.
_LEAST_SHARE: Final = 0.3
# Fewer than ten samples at the usual rate say little about a share.
_LEAST_NS: Final = 100_000_000
_FETCHES: Final = (".__getitem__", ".__getitems__")


@dataclass(frozen=True, slots=True)
class NestedDatasets:
    """Datasets of one kind that wrap each other.

    Attributes:
        name: of their function that fetches samples.
        levels: how often it is nested in itself at most.
        nodes: nodes with the time, those with most first.
        value: time of the levels below the first, without the innermost dataset, ns.
        share: the same as a share of the time in which batches are made, 0 to 1.
    """

    name: str
    levels: int
    nodes: tuple[int, ...]
    value: int
    share: float


def nested_datasets(profile: Profile, loading: source_locations.Mask) -> NestedDatasets | None:
    """Return the datasets whose levels take much of the time at and below the nodes `loading`."""
    if not is_sampled(profile.metrics):
        return None
    tree = profile.tree
    inside = tree.at_or_below(loading)
    values = np.where(inside, exclusive_or_zeros(profile, ELAPSED_TIME_NS.name), 0)
    fetches = _fetches(profile) & inside
    # A comprehension or a call of a library belongs to the level above it.
    above = np.where(tree.parent == NO_NODE, NO_NODE, tree.nearest(fetches)[tree.parent])
    functions = _functions(profile)
    levels = np.where(fetches, 1, 0)
    for node in np.flatnonzero(fetches & (above != NO_NODE)).tolist():
        if functions[node] == functions[above[node]]:
            levels[node] = levels[above[node]] + 1
    deep = np.flatnonzero(levels >= _LEAST_LEVELS)
    if not len(deep):
        return None
    function = functions[deep[levels[deep].argmax()]]
    level = tree.nearest(fetches)
    spent = np.where((level != NO_NODE) & (functions[level] == function), values, 0)
    spent[levels[level] <= 1] = 0
    value, whole = int(spent.sum()), int(values.sum())
    if value < max(_LEAST_NS, _LEAST_SHARE * whole):
        return None
    deepest = int(levels[functions == function].max())
    nodes = np.argsort(-spent, kind="stable")[: np.count_nonzero(spent)]
    name = profile.frame(int(deep[levels[deep].argmax()])).name
    return NestedDatasets(name, deepest, tuple(nodes.tolist()[:8]), value, value / whole)


def _fetches(profile: Profile) -> source_locations.Mask:
    """Return which nodes are functions that fetch samples of a dataset, shape (nodes,)."""
    frames = profile.frames
    is_fetch = np.array(
        [frames.strings[int(name)].endswith(_FETCHES) for name in frames.name], np.bool_
    )
    return np.asarray(is_fetch[profile.tree.frame] & profile.is_kind(FrameKind.PYTHON))


def _functions(profile: Profile) -> source_locations.Ints:
    """Return a number for the function of each node, without its line, shape (nodes,)."""
    frames = profile.frames
    function = (frames.file.astype(np.int64) << 32) | frames.name
    return np.asarray(function[profile.tree.frame])
