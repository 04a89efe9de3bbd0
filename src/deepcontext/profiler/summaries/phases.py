"""The metric and operator calls of each phase: forward, backward, recompute, optimizer, ...

Invariant: each node is counted under exactly one phase, so the values add up to the metric's total.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.grouping import sums
from deepcontext.profiler.model.metric_values import summed

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.model.profile_model import ProfileModel as Profile
    from deepcontext.profiler.model.tree import Tree

# The order in which views list the phases; nodes without a phase count as `OTHER`.
PHASES: Final = (
    Phase.FORWARD,
    Phase.BACKWARD,
    Phase.RECOMPUTE,
    Phase.OPTIMIZER,
    Phase.DATA_LOADING,
    Phase.OTHER,
)
# The phase that a node of each phase is counted under, shape (phases,), uint8.
SHOWN_PHASE: Final = np.array(
    [Phase.OTHER if phase is Phase.NONE else phase for phase in Phase], np.uint8
)


@dataclass(frozen=True, slots=True)
class PhaseRow:
    """One phase of the program.

    Attributes:
        phase: never `Phase.NONE`.
        value: sum of the metric over the nodes of this phase.
        operator_calls: number of operator calls.
    """

    phase: Phase
    value: int
    operator_calls: int


def shown_phase(tree: Tree) -> npt.NDArray[np.uint8]:
    """Return the phase that each node is counted under, shape (nodes,), uint8; see `PHASES`."""
    return SHOWN_PHASE[tree.phase]


def by_phase(profile: Profile, metric: str = HOST_TIME_NS.name) -> tuple[PhaseRow, ...]:
    """Split the metric by phase, in the order of `PHASES`; the values sum to the total."""
    return profile.once(("by phase", metric), lambda: _by_phase(profile, metric))


def _by_phase(profile: Profile, metric: str) -> tuple[PhaseRow, ...]:
    phase = shown_phase(profile.tree)
    values = sums(phase, summed(profile, metric), len(Phase))
    calls = np.zeros(len(Phase), np.int64)
    rows = profile.metrics.get(CALL_DURATION_NS.name)
    if rows is not None:
        is_operator = profile.is_kind(FrameKind.OPERATOR)
        called = is_operator[rows.node]
        calls = sums(phase[rows.node[called]], rows.count[called].astype(np.int64), len(Phase))
    return tuple(PhaseRow(row, int(values[row]), int(calls[row])) for row in PHASES)
