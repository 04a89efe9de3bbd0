"""Recurrent cells written by hand: a function of products and gates that runs for each step of a sequence.

Does not judge chains of operators that run once a step (`kernel_fusion.py`). How often a function runs
in a training step needs steps; where there are none (inference), no cell is found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers import places
from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.operator_names import PRODUCTS
from deepcontext.profiler.metric import CALL_DURATION_NS, CPU_TIME_NS
from deepcontext.profiler.query import Query

if TYPE_CHECKING:
    from deepcontext.profiler.profile import Profile

_HOST: Final = CPU_TIME_NS.name
_LEAST_SHARE: Final = 0.15
_LEAST_GATES: Final = 5
# In one training step, by one call path; layers of a model are paths of their own.
_LEAST_CALLS_A_STEP: Final = 8


@dataclass(frozen=True, slots=True)
class RecurrentCell:
    """A function that is one.

    Attributes:
        place: its products and gates.
        calls_a_step: how often it runs in a training step.
    """

    place: places.Place
    calls_a_step: float


def recurrent_cells(profile: Profile, pointwise: Query, own: places.Mask) -> list[RecurrentCell]:
    """Return the cells; `pointwise` are the pointwise operators that Python code calls."""
    steps = places.steps(profile)
    if not steps or CALL_DURATION_NS.name not in profile.metrics:
        return []
    calls = profile.counts(CALL_DURATION_NS.name)
    repeated = Query(profile, pointwise.mask() & (calls >= _LEAST_CALLS_A_STEP * steps))
    if not repeated.count():
        return []
    products = places.operators(profile, PRODUCTS).phase("none", "forward", "other")
    parts = Query(profile, repeated.mask() | products.mask())
    found = []
    for place in places.by_function(parts, _HOST, _LEAST_SHARE * places.total(profile, _HOST), own):
        nodes = np.array(place.nodes)
        gates = nodes[repeated.mask()[nodes]]
        # A line that calls an operator, of however many layers of the class.
        frame, parent = profile.tree.frame, profile.tree.parent
        sites = np.unique(np.stack([frame[parent[gates]], frame[gates]]), axis=1).shape[1]
        if place.frame is not None and len(gates) < len(nodes) and sites >= _LEAST_GATES:
            usual = int(np.sort(calls[gates])[len(gates) // 2])
            found.append(RecurrentCell(place, usual / steps))
    return found


def cell_finding(profile: Profile, cell: RecurrentCell) -> Finding:
    """Report a cell."""
    place = cell.place
    share = place.value / places.total(profile, _HOST)
    where = places.place_text(profile, place.frame)
    function = place.frame.name if place.frame else ""
    return Finding(
        id="kernel_fusion",
        severity=Severity.of_share(share),
        title=(
            f"a recurrent cell is written out at {where} and runs {cell.calls_a_step:.0f} times a step, "
            f"{share:.0%} of the time in operators"
        ),
        nodes=place.nodes[:8],
        evidence={
            "cell_ns": place.value,
            "cell_share": share,
            "calls_per_step": round(cell.calls_a_step, 1),
            "operators_count": place.count,
        },
        gain=places.bound(
            profile, _HOST, place.value, "this cell costs nothing; in one operator, its products do"
        ),
        advice=(
            "run the whole sequence in one operator (torch.nn.LSTM, GRU, RNN), which multiplies the "
            "inputs of all its steps at once; for a cell of another kind put @torch.compile on "
            f"'{function}', and multiply the inputs before the loop"
        ),
        misleads=(
            "a step needs more than the result of the one before (attention, a sample drawn from "
            "it), so that the sequence cannot be run as a whole"
        ),
    )
