"""Graphs of a step that are still held when the next step's forward runs, although a backward used them.

A backward frees what the forward kept for it, unless it is told to retain the graph: then all activations
stay until the loss is computed anew, beside those of the next step. Seen at the peak, where the results of a
model are alive of two steps at once. Graphs without a backward (`unused_graphs.py`), and graphs of many steps
(`attached_steps.py`, growth), are other causes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.called_operators import has_called_module
from deepcontext.analyzers.shared.model_runs import functions_of, models
from deepcontext.profiler.format.frame import Phase
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros
from deepcontext.profiler.summaries.steps import STEP_SCOPE

if TYPE_CHECKING:
    from deepcontext.analyzers.shared.model_runs import Model
    from deepcontext.profiler.model.profile import Profile

_LEAST_SHARE: Final = 0.5
_FEWEST_STEPS: Final = 3
# Steps of which a result is alive: the one before and the one that runs. More is growth.
_LEAST_STEPS_ALIVE: Final = 1.5
_MOST_STEPS_ALIVE: Final = 2.5
_LEAST_PIECES: Final = 2


def retained_graphs(profile: Profile, prefix: str, peak: int) -> list[Finding]:
    """Return a finding for each module whose activations are held for two steps at once.

    Args:
        profile: the profile.
        prefix: "" for the memory of the host, "gpu_" for that of devices.
        peak: most bytes held at once.
    """
    metric, least = f"{prefix}peak_bytes", _LEAST_SHARE * peak
    if metric not in profile.metrics or HOST_TIME_NS.name not in profile.metrics:
        return []
    steps = _steps(profile)
    if steps < _FEWEST_STEPS or not has_called_module(profile, metric, least):
        return []
    found = []
    for model in models(profile, functions_of(profile).of_node, least, metric):
        held = _held_of_two_steps(profile, prefix, model, steps) if model.has_backward else 0
        if held >= least:
            found.append(_finding(profile, metric, model, held, peak))
    return found


def _steps(profile: Profile) -> int:
    """Return how often the optimizer that steps most often did; several may step in one pass."""
    scopes = source_locations.scopes(profile, STEP_SCOPE).nodes()
    return int(counts_or_zeros(profile, CALL_DURATION_NS.name)[scopes].max(initial=0))


def _held_of_two_steps(profile: Profile, prefix: str, model: Model, steps: int) -> int:
    """Return the bytes at the peak of results of a module's forward that are alive of two steps."""
    inside = slice(model.node, int(profile.tree.subtree_end[model.node]))
    metric = f"{prefix}peak_bytes"
    held = profile.exclusive(metric)[inside]
    pieces = counts_or_zeros(profile, metric)[inside]
    made = counts_or_zeros(profile, f"{prefix}alloc_bytes")[inside]
    alive = pieces * steps / np.maximum(made, 1)
    is_of_two = (alive >= _LEAST_STEPS_ALIVE) & (alive <= _MOST_STEPS_ALIVE)
    is_of_two &= (pieces >= _LEAST_PIECES) & (profile.tree.phase[inside] != Phase.BACKWARD)
    return int(held[is_of_two].sum())


def _finding(profile: Profile, metric: str, model: Model, held: int, peak: int) -> Finding:
    owner = source_locations.climb(profile, np.array([model.node]), profile.is_user_code())
    where = source_locations.location_text(profile, profile.frame(int(owner[0])))
    share = held / peak
    return Finding(
        id="memory",
        severity=Severity.HIGH,
        title=(
            f"activations of two steps of {profile.frame(model.node).name} at {where} are held at once, "
            f"{share:.0%} of the memory at the peak, although a backward has used the earlier ones"
        ),
        nodes=(model.node,),
        evidence={metric: held, "peak_share": share, "calls_count": model.calls},
        gain=Gain(
            metric, held // 2, held / peak / 2, "the activations of one step are held at a time"
        ),
        advice=(
            "let the last backward of a graph free it (no retain_graph=True, or only for the backwards "
            "before the last; one backward of the sum of the losses needs none), or let go of the loss and "
            "the outputs before the next forward (del, a function for the step)"
        ),
        misleads="the next step needs the graph of the step before, as for truncated backpropagation",
    )
