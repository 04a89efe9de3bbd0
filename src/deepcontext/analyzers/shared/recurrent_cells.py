"""Recurrent cells written by hand: a function of products and gates for each step of a sequence.

Does not judge chains of operators that run once a step (`kernel_fusion.py`). Counting runs in a
training step needs steps, so without steps (inference) no cell is found. A function that draws a
sample or reads a value in each run is no cell either, because the next run depends on it (a policy).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.operator_names import PRODUCTS
from deepcontext.analyzers.shared.repeated_work import dependent_runs, steps_or_passes
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import total
from deepcontext.profiler.model.query import Query

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_HOST: Final = HOST_TIME_NS.name
_LEAST_SHARE: Final = 0.15
_LEAST_GATES: Final = 5
# Runs on one call path in a training step, or in one of its backward passes; layers are other paths.
_LEAST_CALLS_A_STEP: Final = 8


@dataclass(frozen=True, slots=True)
class RecurrentCell:
    """A function that is a recurrent cell.

    Attributes:
        location: the cell's products and gates.
        calls_a_step: runs in a training step, or in one backward pass if a step has several.
    """

    location: source_locations.Location
    calls_a_step: float


def recurrent_cells(
    profile: Profile, pointwise: Query, is_user: source_locations.Mask
) -> list[RecurrentCell]:
    """Return the cells; `pointwise` are the pointwise operators that Python code calls."""
    steps = steps_or_passes(profile)
    if not steps:
        return []
    calls = profile.counts(CALL_DURATION_NS.name)
    repeated = Query(profile, pointwise.mask() & (calls >= _LEAST_CALLS_A_STEP * steps))
    if not repeated.count():
        return []
    products = source_locations.operators(profile, PRODUCTS).phase("none", "forward", "other")
    parts = Query(profile, repeated.mask() | products.mask())
    depends = dependent_runs(profile, is_user)
    found = []
    for location in source_locations.by_function(
        parts, _HOST, _LEAST_SHARE * total(profile, _HOST), is_user
    ):
        nodes = np.array(location.nodes)
        gates = nodes[repeated.mask()[nodes]]
        # Lines that call an operator; layers of the same class share their lines.
        frame, parent = profile.tree.frame, profile.tree.parent
        sites = np.unique(np.stack([frame[parent[gates]], frame[gates]]), axis=1).shape[1]
        if location.frame is not None and len(gates) < len(nodes) and sites >= _LEAST_GATES:
            usual = int(np.sort(calls[gates])[len(gates) // 2])
            if 2 * depends.get((location.frame.file, location.frame.name), 0) < usual:
                found.append(RecurrentCell(location, usual / steps))
    return found


def cell_finding(profile: Profile, cell: RecurrentCell) -> Finding:
    """Report a cell."""
    location = cell.location
    share = location.value / total(profile, _HOST)
    where = source_locations.location_text(profile, location.frame)
    function = location.frame.name if location.frame else ""
    return Finding(
        id="kernel_fusion",
        severity=Severity.of_share(share),
        title=(
            f"a hand-written recurrent cell at {where} runs {cell.calls_a_step:.0f} times a step, "
            f"{share:.0%} of the time in operators"
        ),
        nodes=location.nodes[:8],
        evidence={
            "cell_ns": location.value,
            "cell_share": share,
            "calls_per_step": round(cell.calls_a_step, 1),
            "operators_count": location.count,
        },
        gain=source_locations.bound(
            profile,
            _HOST,
            location.value,
            "this cell costs nothing; in one operator, its products still have a cost",
        ),
        advice=(
            "run the whole sequence in one operator (torch.nn.LSTM, GRU, RNN), which multiplies the "
            "inputs of all steps at once; for a cell of another kind put @torch.compile on "
            f"'{function}', and multiply the inputs before the loop"
        ),
        misleads=(
            "a step needs more than the previous step's result (attention), so the sequence cannot "
            "run as a whole"
        ),
    )
