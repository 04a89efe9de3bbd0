"""The labels of a pivot: what splits the first level of a tree.

Invariant: a node has at most one label under a pivot, so splitting by a pivot changes no sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.errors import QueryError
from deepcontext.profiler.format.frame import Phase
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.phases import shown_phase
from deepcontext.profiler.views.pivot import DIMENSIONS, pivots

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.model.profile import Profile
    from tests.ui.oracle.functions import FunctionTable

    Ints = npt.NDArray[np.int64]

NO_LABEL: Final = 0


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """The labels of a pivot.

    Attributes:
        of_node: index into `functions` or `NO_LABEL`, shape (nodes,), int64.
        functions: function that represents each label, the root's for `NO_LABEL`, shape (labels,),
            int64.
        replaced: functions that must not occur again below their label, shape (functions,), bool.
    """

    of_node: Ints
    functions: Ints
    replaced: npt.NDArray[np.bool_]


def labels(profile: Profile, functions: FunctionTable, pivot: str) -> Labels | None:
    """Return the labels of a pivot, None for pivots that only show or hide the threads.

    Raises:
        QueryError: the profile has no such pivot.
    """
    if pivot in {"thread", "none"}:
        return None
    if pivot == "phase":
        return _phase_labels(profile, functions)
    if pivot not in pivots(profile):
        known = ", ".join(pivots(profile))
        raise QueryError(f"cannot split the tree by '{pivot}'; this profile has: {known}")
    kind = DIMENSIONS[pivot]
    is_label = np.array([functions.frame(index).kind is kind for index in range(len(functions))])
    function = functions.of_frame[profile.tree.frame]
    nearest = profile.tree.nearest(is_label[function])
    distinct = np.concatenate([function[:1], np.flatnonzero(is_label)])
    number = np.full(len(functions), NO_LABEL)
    number[distinct[1:]] = np.arange(1, len(distinct))
    of_node = np.where(nearest == NO_NODE, NO_LABEL, number[function[nearest]])
    return Labels(of_node, distinct, is_label)


def _phase_labels(profile: Profile, functions: FunctionTable) -> Labels:
    of_phases = [functions.of_phase(phase) for phase in Phase]
    return Labels(
        of_node=shown_phase(profile.tree).astype(np.int64) + 1,
        functions=np.array([functions.of_frame[profile.tree.frame[0]], *of_phases], np.int64),
        replaced=np.zeros(len(functions), np.bool_),
    )
