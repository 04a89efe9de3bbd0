"""Backward passes that go back through the graphs of earlier steps, because a state was not detached.

A pass runs a node of the graph at most once. If an operator's forward runs once a pass, and its backward
many times, then passes reach graphs of earlier forwards, more of them in each step. Loops that start
several passes for one forward (Jacobians, a gradient for each task) have fewer forwards than passes, and
are left out. Does not judge other backwards (`forward_backward.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.backward_passes import backward_line, passes_from_scalars
from deepcontext.profiler.format.metric import CALL_DURATION_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros, total
from deepcontext.profiler.model.tree import NO_NODE

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.model.query import Query

_LEAST_SHARE: Final = 0.10
_FEWEST_PASSES: Final = 16
# Runs of a backward for each forward. A pass that goes back through all earlier steps runs half as many as
# there are steps. Training on derivatives runs a few, whatever the number of steps.
_LEAST_RUNS: Final = 8
_LEAST_RUNS_A_PASS: Final = 0.25


def attached_steps(profile: Profile, backwards: Query, metric: str) -> list[Finding]:
    """Return at most one finding.

    Args:
        profile: the profile.
        backwards: the backward operators right below the forward operators that caused them.
        metric: time of operators, or of the GPU.
    """
    passes = passes_from_scalars(profile)
    if passes < _FEWEST_PASSES:
        return []
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
    nodes = backwards.nodes()
    forwards = calls[profile.tree.parent[nodes]]
    least_runs = max(_LEAST_RUNS, _LEAST_RUNS_A_PASS * passes)
    is_repeated = (forwards >= passes) & (calls[nodes] >= least_runs * forwards)
    nodes, forwards = nodes[is_repeated], forwards[is_repeated]
    spent = profile.inclusive(metric)[nodes]
    saved = int((spent * (1 - forwards / np.maximum(calls[nodes], 1))).sum())
    share = saved / max(total(profile, metric), 1)
    if share < _LEAST_SHARE:
        return []
    nodes = nodes[np.argsort(-spent, kind="stable")]
    return [_finding(profile, nodes, metric, saved)]


def _finding(profile: Profile, nodes: source_locations.Ints, metric: str, saved: int) -> Finding:
    share = saved / total(profile, metric)
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
    runs, forwards = int(calls[nodes[0]]), int(calls[profile.tree.parent[nodes[0]]])
    top = int(source_locations.climb(profile, nodes[:1], profile.is_user_code())[0])
    forward = source_locations.location_text(
        profile, None if top == NO_NODE else profile.frame(top)
    )
    line = backward_line(profile)
    where = source_locations.location_text(profile, line.frame if line else None)
    return Finding(
        id="forward_backward",
        severity=Severity.of_share(share),
        title=(
            f"the backward at {where} goes back through earlier steps: it runs "
            f"{runs / forwards:.0f} times for each forward of {forward}, {share:.0%} of all"
        ),
        nodes=(*nodes[:4].tolist(), *(line.nodes[:4] if line else ())),
        evidence={
            f"backward_{metric}": int(profile.inclusive(metric)[nodes].sum()),
            "backward_share": share,
            "backward_calls_count": runs,
            "forward_calls_count": forwards,
        },
        gain=source_locations.bound(
            profile, metric, saved, "the backward runs once for each forward"
        ),
        advice=(
            "detach what the next step takes from this one (state = state.detach()), so that the graph of a "
            "step ends where the step begins; then retain_graph=True is not needed"
        ),
        misleads="the gradient is to go through all steps, as in backpropagation through time",
    )
