"""JAX programs so small that launching takes longer than computing.

Three forms: a function outside of `jit` that launches a program for each operation, a Python loop
that launches one program repeatedly, and a program that passes many small arrays (`jax_arguments.py`).
Without sampled device time, the first two are not found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.jax_arguments import many_arguments
from deepcontext.analyzers.shared.jax_calls import calls_of
from deepcontext.analyzers.shared.jax_unrolled import unrolled_programs
from deepcontext.analyzers.shared.processor_time import processor_share
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import (
    HOST_TIME_NS,
)
from deepcontext.profiler.model.metric_values import counts_or_zeros, exclusive_or_zeros, total
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.jax.memory import fed_back_shares, plain_name
from deepcontext.profiler.summaries.lines import nearest_user

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_HOST: Final = HOST_TIME_NS.name
_TRANSFERRED: Final = "transfer_bytes"
_LEAST_SHARE: Final = 0.15
_LEAST_PROGRAMS: Final = 5
# Launches of one program; code that prepares arrays before the loop runs once.
_LEAST_LAUNCHES: Final = 10
# Launches that take less in the whole run are not worth a warning, however little else the program does;
# compiling the programs, which is part of the gain, happens once.
_LEAST_LAUNCH_NS: Final = 50_000_000
# A loop with fewer launches is too short to report.
_LEAST_LOOPS: Final = 1000
# Of the time of the launches. On a processor a launch may compute its program before it returns, so that a
# program which computes for longer is not small.
_MOST_COMPUTED: Final = 0.5
# Of the launches: with NumPy arrays among the arguments, and with a result of an earlier launch.
_MOSTLY: Final = 0.9
_JAX_COMPILING: Final = frozenset({"jax: tracing", "jax: lowering", "jax: compiling"})


def small_launches(profile: Profile) -> list[Finding]:
    """Report functions whose small programs take longer to launch than to compute."""
    return profile.once(small_launches, lambda: _small_launches(profile))


def in_small_launches(profile: Profile) -> source_locations.Mask:
    """Return which nodes belong to the lines with such launches, shape (nodes,).

    What else these lines do (copies in each program, arrays made of numbers) has the same cause.
    """
    is_launched = total(profile, source_locations.JAX_LAUNCHES)
    is_timed = source_locations.judged_total(profile, _HOST)
    found = small_launches(profile) if is_launched and is_timed else []
    if not found:
        return np.zeros(len(profile.tree), np.bool_)
    owner = nearest_user(profile)
    line = source_locations.line_numbers(profile)
    of_node = np.where(owner == NO_NODE, 0, line[profile.tree.frame[owner]])
    return np.isin(of_node, of_node[[node for finding in found for node in finding.nodes]])


def _small_launches(profile: Profile) -> list[Finding]:
    launches = profile.exclusive(source_locations.JAX_LAUNCHES)
    compiling = source_locations.nodes_named(profile, FrameKind.MARKER, _JAX_COMPILING)
    whole = total(profile, _HOST) - compiling.total(_HOST)
    programs = Query(profile, launches >= _LEAST_LAUNCHES).kind(FrameKind.OPERATOR)
    # Programs of many operations are not small, however long their launch takes.
    large = {node for each in unrolled_programs(profile) for node in calls_of(profile, each.module)}
    found, eager = many_arguments(profile), []
    large |= {node for finding in found for node in finding.nodes}
    for location in source_locations.by_function(programs, _HOST):
        nodes = np.array(location.nodes)
        if location.nodes[0] in large:
            continue
        spent = int(profile.exclusive(_HOST)[nodes].sum())
        if spent / max(whole, 1) < _LEAST_SHARE or location.frame is None:
            continue
        computed = _device_time(profile, nodes)
        if computed > spent or not computed:  # programs without device time may compute for long
            continue
        names = list(dict.fromkeys(profile.frame(node).name for node in location.nodes))
        if len(names) >= _LEAST_PROGRAMS:
            eager.append(location)
        elif int(launches[nodes].max()) >= _LEAST_LOOPS and computed <= _MOST_COMPUTED * spent:
            found.append(_loop_finding(profile, location, names, spent, spent / whole))
    for location in _with_callees(profile, eager):
        names = list(dict.fromkeys(profile.frame(node).name for node in location.nodes))
        spent = int(profile.exclusive(_HOST)[list(location.nodes)].sum())
        found.append(_eager_finding(profile, location, names, spent, spent / whole))
    return sorted(found, key=lambda finding: -float(finding.evidence["launch_ns"]))


def _with_callees(
    profile: Profile, locations: list[source_locations.Location]
) -> list[source_locations.Location]:
    """Put functions that others among them call together with these: one `jit` mends all."""
    tree, frames = profile.tree, profile.frames
    owner = nearest_user(profile)
    groups: list[tuple[source_locations.Mask, list[source_locations.Location]]] = []
    # Callers first: their frames are nearer to the root.
    for each in sorted(locations, key=lambda one: int(tree.depth[owner[one.nodes[0]]])):
        nodes = np.array(each.nodes)
        group = next((group for called, group in groups if called[nodes].all()), None)
        if group is not None:
            group.append(each)
            continue
        frame = tree.frame[owner[nodes[0]]]
        is_same = (frames.name == frames.name[frame]) & (frames.file == frames.file[frame])
        groups.append((tree.below(is_same[tree.frame]), [each]))
    return [_together(profile, group) for _, group in groups]


def _together(
    profile: Profile, group: list[source_locations.Location]
) -> source_locations.Location:
    nodes = np.array([node for each in group for node in each.nodes])
    nodes = nodes[np.argsort(-profile.exclusive(_HOST)[nodes], kind="stable")]
    return source_locations.Location(
        group[0].frame,
        tuple(nodes.tolist()),
        sum(each.value for each in group),
        sum(each.count for each in group),
    )


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


def _severity(profile: Profile, spent: int, share: float) -> Severity:
    # Beside other programs, a launch takes longer.
    is_worth = spent * processor_share(profile) >= _LEAST_LAUNCH_NS
    return Severity.of_share(share) if is_worth else Severity.INFO


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
        severity=_severity(profile, spent, share),
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
            "one launch of all operations, and compiling them, costs nothing; computing takes as long "
            "as before",
        ),
        advice=(
            f"{source_locations.decorate('@jax.jit', function)}, or on the step that calls it: "
            "XLA then fuses these operations and launches them as one program"
        ),
        misleads=(
            "the function runs under jax.disable_jit on purpose; the function branches on values "
            "(under jit, branches need jax.lax.cond and while_loop)"
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
    is_fed = _is_fed_from_outside(profile, location)
    return Finding(
        id="kernel_fusion",
        severity=Severity.INFO if is_fed else _severity(profile, spent, share),
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
            "the loop is one launch that costs nothing; computing takes as long as before",
        ),
        advice=(
            "make the arrays of many steps at once, stack them, and let one launch take these steps "
            "(jax.lax.scan)"
            if is_fed
            else "put the loop under jit: jax.lax.scan or fori_loop if a step needs the previous step, "
            "otherwise jax.vmap"
        ),
        misleads=(
            "each launch waits for something outside of JAX (a batch, an environment), so the loop "
            "cannot be compiled"
        ),
    )


def _is_fed_from_outside(profile: Profile, location: source_locations.Location) -> bool:
    """Return whether the loop is one of steps that each take data from NumPy and an earlier result.

    Such a loop (of training, or of an environment) cannot be compiled as it is. Samples that do not
    depend on one another can be one batch, however they are made.
    """
    nodes = np.array(location.nodes)
    launches = exclusive_or_zeros(profile, source_locations.JAX_LAUNCHES)[nodes]
    with_arrays = counts_or_zeros(profile, _TRANSFERRED)[nodes]
    if with_arrays[int(launches.argmax())] < _MOSTLY * launches.max():
        return False
    name = plain_name(profile.frame(int(nodes[launches.argmax()])).name)
    return fed_back_shares(profile).get(name, 0.0) >= _MOSTLY
