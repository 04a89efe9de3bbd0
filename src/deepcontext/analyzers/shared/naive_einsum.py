"""Calls of NumPy's einsum without a path, which loop over all indices at once.

Recognised by samples in the function `einsum` itself, at one line of it: with a path (`optimize=True`) it
spends time on the path and on several products. Does not know the subscripts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.model.elapsed import ELAPSED_TIME_NS, is_sampled
from deepcontext.profiler.model.metric_values import exclusive_or_zeros
from deepcontext.profiler.model.tree import NO_NODE

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

# `numpy/_core/` since NumPy 2, `numpy/core/` before.
_NAME: Final = "einsum"
_FILE: Final = "core/einsumfunc.py"
_MOST: Final = 0.5
ADVICE: Final = (
    "give einsum a path, np.einsum(..., optimize=True), or write it as products of two operands with @ "
    "(BLAS): without a path it loops over all indices of all operands at once, also for two operands"
)
MISLEADS: Final = (
    "the subscripts contain no product of matrices (a diagonal, a sum of elements), so that a path has "
    "nothing to save; a path with large intermediate results needs more memory"
)


def naive_einsums(profile: Profile) -> source_locations.Mask:
    """Return which nodes are calls of einsum without a path, shape (nodes,)."""
    return profile.once(naive_einsums, lambda: _naive_einsums(profile))


def is_naive_einsum(profile: Profile, nodes: tuple[int, ...]) -> bool:
    """Return whether most of the time of some nodes passes in calls of einsum without a path."""
    values = exclusive_or_zeros(profile, ELAPSED_TIME_NS.name)
    chosen = np.array(nodes, np.int64)
    inner = chosen[naive_einsums(profile)[chosen]]
    return bool(values[inner].sum() > _MOST * values[chosen].sum())


def _naive_einsums(profile: Profile) -> source_locations.Mask:
    tree, frames = profile.tree, profile.frames
    naive = np.zeros(len(tree), np.bool_)
    if not is_sampled(profile.metrics):
        return naive
    einsum = _einsum(profile)
    values = exclusive_or_zeros(profile, ELAPSED_TIME_NS.name)
    spent = tree.at_or_below(einsum) & (values > 0)
    owner = tree.nearest(profile.is_user_code()[tree.frame])
    caller = np.where(
        owner == NO_NODE, 0, source_locations.line_numbers(profile)[tree.frame[owner]]
    )
    line = frames.line[tree.frame]
    for each in np.unique(caller[einsum & (caller != 0)]).tolist():
        own = spent & (caller == each)
        if einsum[own].all() and len(np.unique(line[own])) == 1:
            naive |= own
    return naive


def _einsum(profile: Profile) -> source_locations.Mask:
    """Return which nodes are the function itself, shape (nodes,)."""
    frames = profile.frames
    names = [
        number for number in np.unique(frames.name).tolist() if frames.strings[number] == _NAME
    ]
    is_einsum = np.isin(frames.name, names)
    for frame in np.flatnonzero(is_einsum).tolist():
        file = frames.strings[int(frames.file[frame])]
        is_einsum[frame] = file.replace("\\", "/").endswith(_FILE)
    return np.asarray(is_einsum[profile.tree.frame] & profile.is_kind(FrameKind.PYTHON))
