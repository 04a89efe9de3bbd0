"""JAX programs that pass many small arrays in each launch, which takes longer than computing on them.

Each launch checks and wraps every array of its arguments and results. Profiles from before the number of
arguments was recorded give no finding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.jax_calls import function_of
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import DEVICE_TIME_NS, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import exclusive_or_zeros, inclusive_or_zeros
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.summaries.jax import operations as jax_operations
from deepcontext.profiler.summaries.jax.memory import plain_name
from deepcontext.profiler.summaries.lines import nearest_user
from deepcontext.profiler.summaries.setup_time import setup_time

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_LEAST_ARGUMENTS: Final = 64
# On average. Larger arrays are weights of layers, for which a launch is short.
_MOST_BYTES: Final = 4096
_LEAST_LAUNCHES: Final = 100
_LEAST_SHARE: Final = 0.15


def many_arguments(profile: Profile) -> list[Finding]:
    """Return a finding for each program whose many small arguments make its launches long."""
    setup = setup_time(profile)
    passed = {
        function_of(each.program): each
        for each in jax_operations.arguments(profile)
        if each.count >= _LEAST_ARGUMENTS and each.size_bytes <= _MOST_BYTES * each.count
    }
    if not passed or setup is None or setup.working_ns <= 0:
        return []
    launches = exclusive_or_zeros(profile, source_locations.JAX_LAUNCHES)
    host = exclusive_or_zeros(profile, HOST_TIME_NS.name)
    device = inclusive_or_zeros(profile, DEVICE_TIME_NS.name)
    found = []
    for node in (
        Query(profile, launches >= _LEAST_LAUNCHES).kind(FrameKind.OPERATOR).nodes().tolist()
    ):
        arguments = passed.get(plain_name(profile.frame(node).name))
        share = int(host[node]) / setup.working_ns
        # A program that computes for longer waits for no launch.
        if arguments and share >= _LEAST_SHARE and device[node] <= host[node]:
            found.append(_finding(profile, node, arguments, share))
    return found


def _finding(
    profile: Profile, node: int, arguments: jax_operations.Arguments, share: float
) -> Finding:
    count = int(exclusive_or_zeros(profile, source_locations.JAX_LAUNCHES)[node])
    spent = int(exclusive_or_zeros(profile, HOST_TIME_NS.name)[node])
    where = source_locations.location_text(profile, profile.frame(int(nearest_user(profile)[node])))
    return Finding(
        id="kernel_fusion",
        severity=Severity.of_share(share),
        title=(
            f"{count} launches of {profile.frame(node).name} at {where} pass {arguments.count} arrays each, "
            f"of {arguments.size_bytes // arguments.count} bytes on average: {share:.0%} of the time"
        ),
        nodes=(node,),
        evidence={
            "launch_ns": spent,
            "launch_share": share,
            "launches_count": count,
            "mean_launch_ns": spent // count,
            "arguments_count": arguments.count,
        },
        # No bound: the program of few arrays also compiles and computes less (measured: 90 % where launches
        # took 63 %).
        advice=(
            "keep the values stacked in a few arrays between the calls (jnp.stack, "
            "jax.flatten_util.ravel_pytree): each launch checks and wraps every leaf of a pytree, and the "
            "program computes on leaves one by one"
        ),
        misleads="the values have many shapes and are many, so that stacking them changes all of the program",
    )
