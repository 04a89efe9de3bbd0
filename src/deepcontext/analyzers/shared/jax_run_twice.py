"""Jitted functions that compute what the gradient of the same arguments computes, too.

Recognised by two calls of one function of the user's code with the same arguments, one after the other: the
other program has a backward, and the lines of the first. Repetitions are counted for each call, not for each
pair of calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.called_operators import functions_of_nodes
from deepcontext.profiler.format.frame import Phase
from deepcontext.profiler.model.metric_values import exclusive_or_zeros, inclusive_or_zeros, total
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.jax import programs as jax_programs
from deepcontext.profiler.summaries.lines import nearest_user

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_SAME: Final = "same_arguments_count"
_LEAST_SHARE: Final = 0.10
_LEAST_CALLS: Final = 5
# Of the first program's device time, at lines that the other program has, too. A gradient needs no value of
# the loss's last operations, so that the compiler leaves some out.
_LEAST_COMMON: Final = 0.8


@dataclass(frozen=True, slots=True)
class _Call:
    """A place that calls a compiled program.

    Attributes:
        node: the call.
        function: number of the user's function that calls.
        launches: number of launches.
        repeated: calls with the arguments of another call shortly before.
        lines: device time by number of the user's line inside the program, ns.
        device_ns: device time of all launches.
        has_backward: whether the program has a backward.
    """

    node: int
    function: int
    launches: int
    repeated: int
    lines: dict[int, int]
    device_ns: int
    has_backward: bool


def forwards_run_twice(profile: Profile) -> list[Finding]:
    """Return a finding for each call whose value a gradient of the same arguments computes again."""
    if _SAME not in profile.metrics:
        return []
    metric = jax_programs.device_metric(profile)
    whole = source_locations.judged_total(profile, metric)
    if not whole:
        return []
    calls = _calls(profile, metric)
    found = []
    for value in calls:
        gradients = [each for each in calls if _is_gradient_of(each, value)]
        if not gradients:
            continue
        repeated = max(value.repeated, *(each.repeated for each in gradients))
        # Other launches, for example with other samples, are no repetition.
        spent = int(value.device_ns * min(repeated / max(value.launches, 1), 1.0))
        if repeated >= _LEAST_CALLS and spent >= _LEAST_SHARE * whole:
            found.append(_finding(profile, value, gradients[0], repeated, spent))
    return found


def _calls(profile: Profile, metric: str) -> list[_Call]:
    """Return the calls of programs that have lines of the user, in functions that repeat arguments."""
    tree = profile.tree
    same = exclusive_or_zeros(profile, _SAME)
    function = functions_of_nodes(profile)
    launches = exclusive_or_zeros(profile, source_locations.JAX_LAUNCHES)
    nodes = np.flatnonzero((launches >= _LEAST_CALLS) & np.isin(function, function[same > 0]))
    spent = exclusive_or_zeros(profile, metric)
    whole = inclusive_or_zeros(profile, metric)
    owner = nearest_user(profile)
    line = source_locations.line_numbers(profile)
    found = []
    for node in nodes.tolist():
        below = np.arange(node, int(tree.subtree_end[node]))
        below = below[(spent[below] > 0) & (owner[below] != NO_NODE) & (owner[below] > node)]
        lines: dict[int, int] = {}
        for each in below.tolist():
            number = int(line[tree.frame[owner[each]]])
            lines[number] = lines.get(number, 0) + int(spent[each])
        if lines:
            found.append(
                _Call(
                    node=node,
                    function=int(function[node]),
                    launches=int(launches[node]),
                    repeated=int(same[node]),
                    lines=lines,
                    device_ns=int(whole[node]),
                    has_backward=bool((tree.phase[below] == Phase.BACKWARD).any()),
                )
            )
    return found


def _is_gradient_of(gradient: _Call, value: _Call) -> bool:
    if gradient.function != value.function or value.has_backward or not gradient.has_backward:
        return False
    common = sum(spent for line, spent in value.lines.items() if line in gradient.lines)
    return common >= _LEAST_COMMON * sum(value.lines.values())


def _finding(profile: Profile, value: _Call, gradient: _Call, calls: int, spent: int) -> Finding:
    metric = jax_programs.device_metric(profile)
    share = spent / total(profile, metric)
    owner = nearest_user(profile)
    where, other = (
        source_locations.location_text(profile, profile.frame(int(owner[each.node])))
        for each in (value, gradient)
    )
    return Finding(
        id="model_calls",
        severity=Severity.of_share(share),
        title=(
            f"{profile.frame(value.node).name} at {where} computes again what the gradient at {other} "
            f"computes from the same arguments, {share:.0%} of the device time"
        ),
        nodes=(value.node, gradient.node),
        evidence={"device_ns": spent, "device_share": share, "calls_count": calls},
        gain=source_locations.bound(
            profile, metric, spent, "the gradient returns the value at no cost"
        ),
        advice=(
            "call one function that returns both: jax.jit(jax.value_and_grad(loss)), with has_aux=True for "
            "other results of the forward (a prediction, a metric)"
        ),
        misleads="the arguments are objects whose contents the program changes between the two calls",
    )
