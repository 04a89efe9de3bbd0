"""Arrays of JAX that are made from lists, whose numbers are converted one by one in Python.

`jnp.array` looks at each element of nested lists several times before NumPy copies the numbers. Recognised
by time inside `jnp.array` that is far more than copying the bytes takes. Arrays made while a program is
traced, and lists of arrays, which are joined on the device, are not judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import (
    PROGRAM_LAUNCH_COUNT,
    SAMPLED_CPU_TIME_NS,
    SAMPLED_READY_TIME_NS,
)
from deepcontext.profiler.model.metric_values import counts_or_zeros, exclusive_or_zeros
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries import time_between_operators
from deepcontext.profiler.summaries.lines import nearest_user
from deepcontext.profiler.summaries.setup_time import importing, setup_time

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

    Ints = source_locations.Ints

_MAKING: Final = "jax: make an array"
_BYTES: Final = "transfer_bytes"
_LEAST_SHARE: Final = 0.10
# Fewer than ten samples at the usual rate say little about a share.
_LEAST_NS: Final = 100_000_000
# Arrays that a program makes before its loop are made once.
_LEAST_ARRAYS: Final = 5
# Copying a byte takes less than 1 ns. Source: measured, jax 0.10.2: 1,300 to 2,600 ns for each number of a
# list, of 4 bytes; NumPy takes 30 ns.
_LEAST_NS_PER_BYTE: Final = 50
# A launch and the checks around it take up to 0.2 ms, whatever the array was made from.
_LEAST_NS_PER_ARRAY: Final = 500_000


def arrays_of_lists(profile: Profile) -> list[Finding]:
    """Return a finding for each line that spends much of the time on making arrays from lists."""
    setup = setup_time(profile)
    making = source_locations.nodes_named(profile, FrameKind.MARKER, {_MAKING}).mask()
    if setup is None or setup.working_ns <= 0 or not making.any():
        return []
    tree = profile.tree
    owner = nearest_user(profile)
    inside = tree.at_or_below(making) & (owner != NO_NODE)
    inside &= ~tree.at_or_below(source_locations.compiling(profile).mask()) & ~importing(profile)
    inside &= time_between_operators.on_main_threads(profile)
    nodes = np.flatnonzero(inside)
    line = profile.frames.source_line()[tree.frame[owner]]
    return [
        finding
        for each in np.unique(line[nodes]).tolist()
        if (finding := _judged(profile, nodes[line[nodes] == each], making, setup.working_ns))
    ]


def _judged(
    profile: Profile, nodes: Ints, making: source_locations.Mask, whole: int
) -> Finding | None:
    """Return a finding if the nodes, of one line, convert numbers for long.

    Args:
        profile: the profile.
        nodes: nodes of the line inside `jnp.array`, without compiling.
        making: nodes of `jnp.array` itself, shape (nodes of the profile,).
        whole: time of the run without imports and compiling, ns.
    """
    converting = nodes[making[nodes]]
    on_cpu = int(exclusive_or_zeros(profile, SAMPLED_CPU_TIME_NS.name)[converting].sum())
    # A thread that has no processor works, too: on a quieter machine it would run.
    ready = int(exclusive_or_zeros(profile, SAMPLED_READY_TIME_NS.name)[converting].sum())
    copied = int(exclusive_or_zeros(profile, _BYTES)[nodes].sum())
    arrays = int(counts_or_zeros(profile, _BYTES)[nodes].sum())
    launches = int(exclusive_or_zeros(profile, PROGRAM_LAUNCH_COUNT.name)[nodes].sum())
    value = on_cpu + ready
    if value < max(_LEAST_SHARE * whole, _LEAST_NS) or arrays < _LEAST_ARRAYS:
        return None
    # Lists of arrays: one program after the other puts these together.
    if launches > 2 * arrays:
        return None
    if on_cpu < max(_LEAST_NS_PER_BYTE * copied, _LEAST_NS_PER_ARRAY * arrays):
        return None
    cost = exclusive_or_zeros(profile, SAMPLED_CPU_TIME_NS.name)[converting]
    converting = converting[np.argsort(-cost, kind="stable")]
    frame = profile.frame(int(nearest_user(profile)[converting[0]]))
    share = min(value / whole, 1.0)
    return Finding(
        id="host_work",
        severity=Severity.of_share(share),
        title=(
            f"jnp.array converts lists number by number at "
            f"{source_locations.location_text(profile, frame)}, {share:.0%} of the time"
        ),
        nodes=tuple(converting[:8].tolist()),
        evidence={
            "host_work_ns": value,
            "host_work_share": share,
            "arrays_count": arrays,
            "copied_bytes": copied,
        },
        gain=Gain("elapsed time", value, share, "converting the numbers costs nothing"),
        advice=(
            "give jnp.array a NumPy array instead of lists: jnp.array(np.array(rows)) converts many times "
            "as fast; better, keep the data in NumPy arrays from the start, and write rows into one"
        ),
        misleads="the lists hold few numbers, and making them takes longer than converting",
    )
