"""JAX programs that compute a function whose gradient another program computes, forward included.

Recognised by the work at each source line: all of the first program's is in the forward of the second, and
one function launches both equally often. That both get the same arguments is not known.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.called_operators import NO_FUNCTION, functions_of_nodes
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import DEVICE_TIME_NS, PROGRAM_LAUNCH_COUNT
from deepcontext.profiler.model.metric_values import exclusive_or_zeros, total

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepcontext.profiler.model.profile import Profile

    Mask = source_locations.Mask

_FLOPS: Final = "flops"
_LEAST_LAUNCHES: Final = 10
_LEAST_SHARE: Final = 0.05
# The gradient's program may leave out what only the value needs, such as the last layer.
_LEAST_COMMON: Final = 0.8
# Launches of one by those of the other: only some steps may show the value.
_LEAST_TOGETHER: Final = 0.9


def forward_twice(profile: Profile) -> list[Finding]:
    """Return a finding for each program whose results the program of a gradient computes, too."""
    if not {_FLOPS, DEVICE_TIME_NS.name, PROGRAM_LAUNCH_COUNT.name} <= set(profile.metrics):
        return []
    least = _LEAST_SHARE * total(profile, DEVICE_TIME_NS.name)
    spent = profile.inclusive(DEVICE_TIME_NS.name)
    found = []
    for value, gradient in _pairs(profile):
        if spent[value] < least:
            continue
        own = _work(profile, value, profile.tree.phase != Phase.BACKWARD)
        forward = _work(profile, gradient, profile.tree.phase == Phase.FORWARD)
        common = sum((own.at & forward.below).values())
        if min(common, forward.total) >= _LEAST_COMMON * own.total > 0:
            found.append(_finding(profile, value, gradient, int(spent[value])))
    return found


def _pairs(profile: Profile) -> Iterator[tuple[int, int]]:
    """Yield programs without and with a backward that one function launches equally often."""
    tree = profile.tree
    launches = exclusive_or_zeros(profile, PROGRAM_LAUNCH_COUNT.name)
    functions = functions_of_nodes(profile)
    is_program = (launches >= _LEAST_LAUNCHES) & (functions != NO_FUNCTION)
    has_backward = is_program & tree.at_or_above(
        (tree.phase == Phase.BACKWARD) & (exclusive_or_zeros(profile, DEVICE_TIME_NS.name) > 0)
    )
    for gradient in np.flatnonzero(has_backward).tolist():
        same = is_program & ~has_backward & (functions == functions[gradient])
        for value in np.flatnonzero(same).tolist():
            few, many = sorted((int(launches[value]), int(launches[gradient])))
            if few >= _LEAST_TOGETHER * many:
                yield value, gradient


@dataclass(slots=True)
class _Work:
    """The operations of a launch by source line, flop: at the line itself, and with what it calls."""

    total: int = 0
    at: Counter[tuple[str, int]] = field(default_factory=Counter)
    below: Counter[tuple[str, int]] = field(default_factory=Counter)


def _work(profile: Profile, program: int, chosen: Mask) -> _Work:
    """Return the operations of a program, as far as they are chosen.

    The compiler gives a fusion of several lines to the line that calls them all.
    """
    tree = profile.tree
    flops = exclusive_or_zeros(profile, _FLOPS)
    launches = int(exclusive_or_zeros(profile, PROGRAM_LAUNCH_COUNT.name)[program])
    inside = np.arange(program + 1, int(tree.subtree_end[program]))
    work = _Work()
    for node in inside[(flops[inside] > 0) & chosen[inside]].tolist():
        frames = [profile.frame(step) for step in tree.path(node) if step > program]
        lines = [(each.file, each.line) for each in frames if each.kind is FrameKind.PYTHON]
        if lines:
            done = int(flops[node]) // launches
            work.total += done
            work.at[lines[-1]] += done
            work.below.update(dict.fromkeys(lines, done))
    return work


def _place(profile: Profile, node: int) -> str:
    owner = source_locations.climb(profile, np.array([node]), profile.is_user_code())
    return source_locations.location_text(profile, profile.frame(int(owner[0])))


def _finding(profile: Profile, value: int, gradient: int, spent: int) -> Finding:
    share = spent / total(profile, DEVICE_TIME_NS.name)
    return Finding(
        id="jax_fusion",
        severity=Severity.of_share(share),
        title=(
            f"{profile.frame(value).name} at {_place(profile, value)} computes what the gradient at "
            f"{_place(profile, gradient)} computes again: {share:.0%} of the device time"
        ),
        nodes=(value, gradient),
        evidence={
            "device_time_ns": spent,
            "time_share": share,
            "launches_count": int(exclusive_or_zeros(profile, PROGRAM_LAUNCH_COUNT.name)[value]),
        },
        gain=source_locations.bound(
            profile,
            DEVICE_TIME_NS.name,
            spent,
            "the program of the gradient returns the value, too",
        ),
        advice=(
            "take both from one program: value, slopes = jax.jit(jax.value_and_grad(function))(...), with "
            "has_aux=True for further results"
        ),
        misleads="the value is that of other arguments: of new weights, or of other data",
    )
