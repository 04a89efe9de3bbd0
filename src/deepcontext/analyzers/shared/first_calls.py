"""By how much the longest call of an operator exceeds the others: mostly the first call, which sets up.

The first call of an operator loads libraries, starts threads or compiles. A short program pays this once,
and so does a long one, so it says nothing about the operator. Does not judge (`hotspot.py`,
`forward_backward.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deepcontext.profiler.format.metric import CALL_DURATION_NS

if TYPE_CHECKING:
    from deepcontext.analyzers.shared.source_locations import Ints, Mask
    from deepcontext.profiler.model.profile_model import ProfileModel as Profile


def first_calls(profile: Profile, judged: Mask) -> Ints:
    """Return by how much each node's longest call exceeds the mean of the others, shape (nodes,).

    Args:
        profile: the profile.
        judged: nodes of interest, shape (nodes,); others get 0.

    Returns:
        ns of host time; 0 where calls are not timed individually, or where there is one call.
    """
    extra = np.zeros(len(profile.tree), np.int64)
    rows = profile.metrics.get(CALL_DURATION_NS.name)
    if rows is None or rows.maximum is None:
        return extra
    others = (rows.total - rows.maximum) // np.maximum(rows.count.astype(np.int64) - 1, 1)
    repeated = judged[rows.node] & (rows.count > 1)
    extra[rows.node[repeated]] = (rows.maximum - others)[repeated]
    return extra
