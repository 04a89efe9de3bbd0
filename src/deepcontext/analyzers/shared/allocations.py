"""The largest tensor that each operator made in a call: of its forward, and of its backward.

Does not know how many tensors of this size were made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import Phase

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.model.profile import Profile

    Ints = npt.NDArray[np.int64]

ALLOCATED: Final = "alloc_bytes"


def largest_made(profile: Profile) -> Ints:
    """Return the largest allocation of each node with all below it but the backward, bytes."""
    return profile.once(largest_made, lambda: _largest(profile, backward=False))


def largest_gradient(profile: Profile) -> Ints:
    """Return the largest allocation of the backward at and below each node, bytes."""
    return profile.once(largest_gradient, lambda: _largest(profile, backward=True))


def _largest(profile: Profile, *, backward: bool) -> Ints:
    tree = profile.tree
    largest = np.zeros(len(tree), np.int64)
    rows = profile.metrics.get(ALLOCATED)
    if rows is not None and rows.maximum is not None:
        largest[rows.node] = rows.maximum
    largest[(tree.phase == Phase.BACKWARD) != backward] = 0
    return tree.inclusive_maximum(largest)
