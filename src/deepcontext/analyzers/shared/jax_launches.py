"""JAX programs so small that launching them takes longer than they compute.

Two forms: a function outside of `jit` that launches a program for each operation, and a loop of Python's
that launches one program over and over. Device time is sampled; where there is none, neither is found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import HOST_TIME_NS
from deepcontext.profiler.model.metric_values import total
from deepcontext.profiler.model.query import Query

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_HOST: Final = HOST_TIME_NS.name
_LEAST_SHARE: Final = 0.15
_LEAST_PROGRAMS: Final = 5
# Launches of one program; what prepares arrays before the loop runs once.
_LEAST_LAUNCHES: Final = 10
# A loop of fewer launches is over before it is worth a line.
_LEAST_LOOPS: Final = 1000
_JAX_COMPILING: Final = frozenset({"jax: tracing", "jax: lowering", "jax: compiling"})


def small_launches(profile: Profile) -> list[Finding]:
    """Report functions that launch small programs, whose launches cost more than they compute."""
    launches = profile.exclusive(source_locations.JAX_LAUNCHES)
    compiling = source_locations.nodes_named(profile, FrameKind.MARKER, _JAX_COMPILING)
    whole = total(profile, _HOST) - compiling.total(_HOST)
    programs = Query(profile, launches >= _LEAST_LAUNCHES).kind(FrameKind.OPERATOR)
    found = []
    for location in source_locations.by_function(programs, _HOST):
        nodes = np.array(location.nodes)
        spent = int(profile.exclusive(_HOST)[nodes].sum())
        if spent / max(whole, 1) < _LEAST_SHARE or location.frame is None:
            continue
        computed = _device_time(profile, nodes)
        if computed > spent or not computed:  # not timed: they may compute for long
            continue
        names = list(dict.fromkeys(profile.frame(node).name for node in location.nodes))
        if len(names) >= _LEAST_PROGRAMS:
            found.append(_eager_finding(profile, location, names, spent, spent / whole))
        elif int(launches[nodes].max()) >= _LEAST_LOOPS:
            found.append(_loop_finding(profile, location, names, spent, spent / whole))
    return found


def _device_time(profile: Profile, nodes: source_locations.Ints) -> int:
    metrics = [
        each
        for each in (source_locations.GPU_TIME, source_locations.DEVICE_TIME)
        if each in profile.metrics
    ]
    return sum(int(profile.inclusive(metric)[nodes].sum()) for metric in metrics)


def _evidence(
    names: list[str], count: int, spent: int, share: float
) -> dict[str, int | float | str]:
    return {
        "launch_ns": spent,
        "launch_share": share,
        "launches_count": count,
        "mean_launch_ns": spent // max(count, 1),
        "programs": ", ".join(names[:6]),
    }


def _eager_finding(
    profile: Profile,
    location: source_locations.Location,
    names: list[str],
    spent: int,
    share: float,
) -> Finding:
    count = int(profile.exclusive(source_locations.JAX_LAUNCHES)[list(location.nodes)].sum())
    function = location.frame.name if location.frame else ""
    where = source_locations.location_text(profile, location.frame)
    return Finding(
        id="kernel_fusion",
        severity=Severity.of_share(share),
        title=(
            f"{count} launches of {len(names)} small programs around {where}, {share:.0%} of the "
            "host's time without compiling"
        ),
        nodes=location.nodes[:8],
        evidence=_evidence(names, count, spent, share),
        gain=source_locations.bound(
            profile,
            _HOST,
            location.value,
            "one launch of all, and compiling it, cost nothing; computing takes what it took",
        ),
        advice=(
            f"{source_locations.decorate('@jax.jit', function)}, or on the step that calls it: "
            "XLA then fuses these operations, and one launch does what these do"
        ),
        misleads=(
            "it runs under jax.disable_jit on purpose; the function takes decisions by values "
            "(jax.lax.cond and while_loop are their form under jit)"
        ),
    )


def _loop_finding(
    profile: Profile,
    location: source_locations.Location,
    names: list[str],
    spent: int,
    share: float,
) -> Finding:
    count = int(profile.exclusive(source_locations.JAX_LAUNCHES)[list(location.nodes)].sum())
    where = source_locations.location_text(profile, location.frame)
    return Finding(
        id="kernel_fusion",
        severity=Severity.of_share(share),
        title=(
            f"{count} launches of {names[0]}{' and others' * (len(names) > 1)} around {where} take "
            f"longer than they compute, {share:.0%} of the host's time without compiling"
        ),
        nodes=location.nodes[:8],
        evidence=_evidence(names, count, spent, share),
        gain=source_locations.bound(
            profile,
            _HOST,
            location.value,
            "the loop is one launch, which costs nothing; computing takes what it took",
        ),
        advice=(
            "put the loop under jit: jax.lax.scan or fori_loop where a step needs the one before, "
            "jax.vmap where it does not"
        ),
        misleads=(
            "each launch waits for something outside of JAX (a batch, an environment), so that there "
            "is no loop to compile"
        ),
    )
