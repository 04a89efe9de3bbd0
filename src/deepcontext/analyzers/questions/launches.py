"""Do launches of compiled programs take longer than the programs compute?

Two forms: a function outside of `jit` that launches a program for each operation, and a Python loop that
launches one program repeatedly. Without sampled device time, neither is found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.causes import HOST, Cause
from deepcontext.analyzers.finding import Severity
from deepcontext.analyzers.questions.compiled import unrolled_programs
from deepcontext.analyzers.shared import source_locations as at
from deepcontext.analyzers.shared.jax_calls import calls_of, waits
from deepcontext.analyzers.shared.processor_time import processor_share
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import CALL_DURATION_NS
from deepcontext.profiler.model.metric_values import (
    counts_or_zeros,
    exclusive_or_zeros,
    inclusive_or_zeros,
    total,
)
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.summaries.jax.memory import fed_back_shares
from deepcontext.profiler.summaries.jax.programs import plain_name
from deepcontext.profiler.summaries.lines import nearest_user

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deepcontext.profiler.model.profile import Profile

_TRANSFERRED: Final = "transfer_bytes"
_LEAST_SHARE: Final = 0.15
_FEWEST_PROGRAMS: Final = 5
# Launches of one program; code that prepares arrays before the loop runs once. A loop with fewer is too
# short.
_FEWEST_LAUNCHES: Final = 10
_FEWEST_OF_LOOP: Final = 1000
# Launches that take less in the whole run are not worth a warning, however little else the program does.
_LEAST_NS: Final = 50_000_000
# On a processor a launch may compute its program before it returns, so that a program which computes for
# longer is not small.
_MOST_COMPUTED: Final = 0.5
# Of the launches: with NumPy arrays among the arguments, and with a result of an earlier launch.
_MOSTLY: Final = 0.9
_COMPILING: Final = frozenset({"jax: tracing", "jax: lowering", "jax: compiling"})
# Of the host's time: then compiling is what the line costs, and is said with the launches.
_MOST_COMPILING: Final = 0.5
# Reads of values by launches, from which on the function may branch on values.
_READS_A_LAUNCH: Final = 0.02


def find(profile: Profile) -> Iterator[Cause]:
    """Return functions whose small programs take longer to launch than to compute."""
    if not at.judged_total(profile, HOST) or not total(profile, at.JAX_LAUNCHES):
        return
    launches = profile.exclusive(at.JAX_LAUNCHES)
    compiling = at.nodes_named(profile, FrameKind.MARKER, _COMPILING).total(HOST)
    whole = total(profile, HOST) - compiling
    programs = Query(profile, launches >= _FEWEST_LAUNCHES).kind(FrameKind.OPERATOR)
    eager = []
    for location in _small(profile, programs, whole):
        nodes = list(location.nodes)
        if len({profile.frame(node).name for node in nodes}) >= _FEWEST_PROGRAMS:
            eager.append(location)
        elif launches[nodes].max() >= _FEWEST_OF_LOOP and _MOST_COMPUTED * profile.exclusive(HOST)[
            nodes
        ].sum() >= _device_time(profile, nodes):
            is_fed = _is_fed_from_outside(profile, location)
            key = "one_program_fed_in_loop" if is_fed else "one_program_launched_in_loop"
            yield _cause(profile, key, location, whole, compiling)
    for location in _with_callees(profile, eager):
        key = "many_small_programs"
        if _reads(profile, location) >= _READS_A_LAUNCH * launches[list(location.nodes)].sum():
            key = "many_small_programs_that_branch"
        yield _cause(profile, key, location, whole, compiling)


def _small(profile: Profile, programs: Query, whole: int) -> Iterator[at.Location]:
    """Return functions that launch programs for much of the time, and for longer than these compute."""
    # Programs of many operations are not small, however long their launch takes.
    large = {node for each in unrolled_programs(profile) for node in calls_of(profile, each.module)}
    for location in at.by_function(programs, HOST):
        spent = int(profile.exclusive(HOST)[list(location.nodes)].sum())
        # Programs without device time may compute for long.
        is_small = 0 < _device_time(profile, location.nodes) <= spent
        is_small &= spent >= _LEAST_SHARE * whole and location.nodes[0] not in large
        if is_small and location.frame is not None:
            yield location


def _cause(profile: Profile, key: str, location: at.Location, whole: int, compiling: int) -> Cause:
    nodes = list(location.nodes)
    names = list(dict.fromkeys(profile.frame(node).name for node in nodes))
    spent = int(profile.exclusive(HOST)[nodes].sum())
    count = int(profile.exclusive(at.JAX_LAUNCHES)[nodes].sum())
    part = compiling / max(whole + compiling, 1)
    # Beside other programs, a launch takes longer.
    is_worth = spent * processor_share(profile) >= _LEAST_NS
    return Cause(
        key=key,
        nodes=nodes,
        frame=location.frame,
        metric=HOST,
        value=spent,
        severity=Severity.of_share(spent / whole) if is_worth else Severity.INFO,
        words={
            "share": min(spent / whole, 1.0),
            "launches": count,
            "programs": len(names),
            "name": names[0],
            "others": " and others" if len(names) > 1 else "",
            "decorate": at.decorate("@jax.jit", location.frame.name if location.frame else ""),
            "reads": _reads(profile, location),
            "compiled": f" apart from compiling, which takes {part:.0%} of it"
            if part > _MOST_COMPILING
            else " without compiling",
        },
        evidence={
            "launches_count": count,
            "mean_launch_ns": spent // max(count, 1),
            "compile_share": part,
            "programs": ", ".join(names[:6]),
        },
    )


def _reads(profile: Profile, location: at.Location) -> int:
    """Return how often a function reads values of arrays on the host."""
    own = at.in_functions_of(profile, np.array(location.nodes[:1]))
    return int(counts_or_zeros(profile, CALL_DURATION_NS.name)[waits(profile) & own].sum())


def _device_time(profile: Profile, nodes: Sequence[int]) -> int:
    metrics = (at.GPU_TIME, at.DEVICE_TIME)
    return sum(int(inclusive_or_zeros(profile, each)[list(nodes)].sum()) for each in metrics)


def _with_callees(profile: Profile, locations: list[at.Location]) -> list[at.Location]:
    """Put functions that others among them call together with these: one `jit` mends all."""
    tree, owner = profile.tree, nearest_user(profile)
    groups: list[tuple[at.Mask, list[at.Location]]] = []
    # Callers first: their frames are nearer to the root.
    for each in sorted(locations, key=lambda one: int(tree.depth[owner[one.nodes[0]]])):
        nodes = np.array(each.nodes)
        group = next((group for called, group in groups if called[nodes].all()), None)
        if group is not None:
            group.append(each)
        elif each.frame is not None:
            same = at.functions_like(profile, each.nodes[0])
            groups.append((tree.below(same), [each]))
    found = []
    for _, group in groups:
        nodes = np.array([node for each in group for node in each.nodes])
        nodes = nodes[np.argsort(-profile.exclusive(HOST)[nodes], kind="stable")]
        value, count = (sum(getattr(each, name) for each in group) for name in ("value", "count"))
        found.append(at.Location(group[0].frame, tuple(nodes.tolist()), value, count))
    return found


def _is_fed_from_outside(profile: Profile, location: at.Location) -> bool:
    """Return whether the loop is one of steps that each take data from NumPy and an earlier result.

    Such a loop (of training, or of an environment) cannot be compiled as it is. Samples that do not depend on
    one another can be one batch, however they are made.
    """
    nodes = np.array(location.nodes)
    launches = exclusive_or_zeros(profile, at.JAX_LAUNCHES)[nodes]
    with_arrays = counts_or_zeros(profile, _TRANSFERRED)[nodes]
    if with_arrays[int(launches.argmax())] < _MOSTLY * launches.max():
        return False
    name = plain_name(profile.frame(int(nodes[launches.argmax()])).name)
    return fed_back_shares(profile).get(name, 0.0) >= _MOSTLY
