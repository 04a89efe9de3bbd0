"""What several analyzers ask of a profile: which operators, at which line, at what cost.

Works on whole columns; only selected nodes are looked at one by one. Patterns of names are those of
operators without the shapes that `--shapes` appends.
"""

from __future__ import annotations

import re
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Gain
from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import (
    CALL_DURATION_NS,
    DEVICE_TIME_NS,
    GPU_TIME_NS,
    HOST_TIME_NS,
    PROGRAM_LAUNCH_COUNT,
)
from deepcontext.profiler.model.metric_values import counts_or_zeros, total
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.jax import programs as jax_programs
from deepcontext.profiler.summaries.steps import STEP_SCOPE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    import numpy.typing as npt

    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]
    Floats = npt.NDArray[np.float64]

GPU_TIME: Final = GPU_TIME_NS.name
DEVICE_TIME: Final = DEVICE_TIME_NS.name
JAX_LAUNCHES: Final = PROGRAM_LAUNCH_COUNT.name
COMPILING: Final = "torch.compile: compiling"
# Less than this was set-up; its shares say nothing about a program worth changing.
LEAST_TOTAL_NS: Final = 10_000_000
# On a CPU a copy takes its own time, and the place in the caches of what a reader reads, who does so in
# the forward and in the backward. Source: docs/decisions/0050-a-copy-costs-the-caches-too.md.
_WITH_CACHES: Final = 2
_WITH_CACHES_AND_BACKWARD: Final = 3
# Time of operators by processor time of the process. On cores of its own it is below 1: operators
# compute, on several threads at once where they are large.
_MOST_WAITING: Final = 1.1
# Of the launches of JAX programs.
_MOST_UNTIMED: Final = 0.1
# What follows a graph break in `forward` is a function of torch.compile's own making.
_RESUMED: Final = re.compile(r"torch_dynamo_resume_in_(\w+)_at_\d+")
# Names of a profile's frames by kind, as long as the profile lives: most analyzers ask for them.
_NAMES: Final[weakref.WeakKeyDictionary[Profile, dict[FrameKind, _Names]]] = (
    weakref.WeakKeyDictionary()
)
LOADER_SCOPE: Final = "enumerate(DataLoader)#"


@dataclass(frozen=True, slots=True)
class Location:
    """Nodes that one line or one function of the user's own code stands for.

    Attributes:
        frame: the nearest Python frame of the user's own code, None where there is none.
        nodes: ids, the costliest first.
        value: the metric with descendants, each node counted once.
        count: number of events of the nodes (calls of operators).
    """

    frame: Frame | None
    nodes: tuple[int, ...]
    value: int
    count: int


def cost_metric(profile: Profile) -> str:
    """Return the metric that costs are shares of: device time where there is any, else host time.

    Returns:
        name of a time metric of the profile, or "" where too little was measured to judge.
    """
    for name in (GPU_TIME, DEVICE_TIME, HOST_TIME_NS.name):
        if total(profile, name) > 0:
            return name if judged_total(profile, name) else ""
    return ""


def judged_total(profile: Profile, metric: str) -> int:
    """Return the sum of a time metric, 0 where it is missing, or no fair base of shares.

    It is none where it is too small, or lacks the time of programs that were launched: of JAX those
    that never ran whole while sampled, on a busy machine the training step itself.
    """
    found = total(profile, metric)
    if found < LEAST_TOTAL_NS or (metric == DEVICE_TIME and _is_mostly_untimed(profile)):
        return 0
    return found


def _is_mostly_untimed(profile: Profile) -> bool:
    """Say whether many launches of JAX programs were counted and not timed."""
    if not has_jax(profile):
        return False
    sampling = (jax_programs.section(profile) or {}).get("sampling", {})
    untimed = int(sampling.get("unsampled_launches", 0))
    return untimed > _MOST_UNTIMED * total(profile, JAX_LAUNCHES)


def bound(profile: Profile, metric: str, saved: int, assumption: str) -> Gain:
    """Return a gain of at most `saved`, in the metric's unit, and at most of all there is."""
    whole = total(profile, metric)
    saved = min(max(saved, 0), whole)
    return Gain(metric, saved, saved / (whole or 1), assumption)


def bound_of_copies(profile: Profile, metric: str, copied: int) -> Gain:
    """Return the gain of copying nothing where copies took `copied` of a time metric, ns."""
    if metric == GPU_TIME or total(profile, GPU_TIME):
        return bound(profile, metric, copied, "nothing is copied or converted here")
    has_backward = bool((profile.tree.phase == Phase.BACKWARD).any())
    return bound(
        profile,
        metric,
        copied * (_WITH_CACHES_AND_BACKWARD if has_backward else _WITH_CACHES),
        "nothing is copied here, and what the copies displaced from the caches took each reader "
        "no longer to read again than the copies took",
    )


def has_jax(profile: Profile) -> bool:
    """Say whether the profile has a section of JAX's that this build can read."""
    try:
        return jax_programs.section(profile) is not None
    except ProfileDataError:
        return False


def vendors(profile: Profile) -> tuple[str, ...]:
    """Return the vendors of the GPUs that were recorded: "nvidia", "amd"."""
    return tuple(name for name in ("nvidia", "amd") if f"gpu_{name}" in profile.sections)


def has_device(profile: Profile) -> bool:
    """Say whether anything of a GPU or another device than the CPUs was recorded."""
    return bool(vendors(profile)) or any(name.startswith("gpu_") for name in profile.metrics)


def base_name(name: str) -> str:
    """Return an operator's name without its shapes: ``aten::mm`` of ``aten::mm([2, 3], [3, 4])``."""
    if not name.endswith(")"):
        return name
    return name.partition("([")[0].removesuffix("()")


def nodes_named(
    profile: Profile, kind: FrameKind, accepts: Collection[str] | Callable[[str], bool]
) -> Query:
    """Select nodes of a kind whose name, without shapes, is accepted."""
    test = accepts if callable(accepts) else accepts.__contains__
    names = _names_of(profile, kind)
    accepted = np.array([bool(test(name)) for name in names.names], np.bool_)
    if not accepted.any():
        return Query(profile, np.zeros(len(profile.tree), np.bool_))
    mask = np.zeros(len(profile.frames), np.bool_)
    mask[names.frames] = accepted[names.number]
    return Query(profile, mask[profile.tree.frame])


@dataclass(frozen=True, slots=True)
class _Names:
    """Names, without shapes, of the frames of a kind.

    Attributes:
        frames: which frames are of the kind, shape (n,).
        number: index of each one's name in `names`, shape (n,).
        names: one for each distinct string.
    """

    frames: Ints
    number: Ints
    names: list[str]


def _names_of(profile: Profile, kind: FrameKind) -> _Names:
    of_profile = _NAMES.setdefault(profile, {})
    if kind not in of_profile:
        frames = profile.frames
        of_kind = np.flatnonzero(frames.kind == kind)
        names, number = np.unique(frames.name[of_kind], return_inverse=True)
        bare = [base_name(frames.strings[each]) for each in map(int, names)]
        of_profile[kind] = _Names(of_kind, number, bare)
    return of_profile[kind]


def operators(profile: Profile, accepts: Collection[str] | Callable[[str], bool]) -> Query:
    """Select operators by name, those that ran while a compiler was at work left out."""
    return without(nodes_named(profile, FrameKind.OPERATOR, accepts), compiling(profile))


def compiling(profile: Profile) -> Query:
    """Select the markers below which torch.compile worked."""
    return nodes_named(profile, FrameKind.MARKER, {COMPILING})


def scopes(profile: Profile, prefix: str) -> Query:
    """Select scopes whose name begins with `prefix`, for example `STEP_SCOPE`."""
    return nodes_named(profile, FrameKind.SCOPE, lambda name: name.startswith(prefix))


def without(query: Query, above: Query) -> Query:
    """Leave out what lies below the nodes of another query, and these nodes."""
    mask = above.mask()
    if not mask.any():
        return query
    return Query(query.profile, query.mask() & ~query.profile.tree.at_or_below(mask))


def apart(query: Query) -> Query:
    """Leave out the optimizer and the loader, of which other analyzers speak.

    What a closure does that an optimizer's step was given is the program's own work and stays.
    """
    profile = query.profile
    in_step = profile.tree.at_or_below(scopes(profile, STEP_SCOPE).mask())
    is_own = in_step & (profile.tree.phase == Phase.OPTIMIZER)
    return without(Query(profile, query.mask() & ~is_own), scopes(profile, LOADER_SCOPE))


def outermost(query: Query) -> Query:
    """Leave out nodes that lie below other nodes of the same query."""
    return Query(query.profile, query.mask() & ~query.profile.tree.below(query.mask()))


def crowded_ns(profile: Profile) -> int:
    """Return by how much operators took longer than the process had a processor: others were in its way.

    Returns:
        ns, 0 where they took hardly longer, or processor time was not recorded.
    """
    used = profile.run.cpu_user_ns + profile.run.cpu_system_ns
    loading = outermost(scopes(profile, LOADER_SCOPE)).total(HOST_TIME_NS.name, inclusive=True)
    computing = total(profile, HOST_TIME_NS.name) - loading
    return computing - used if 0 < used * _MOST_WAITING < computing else 0


def climb(profile: Profile, nodes: Ints, frames: Mask) -> Ints:
    """Return for each node the nearest of itself and its ancestors whose frame is in `frames`.

    Args:
        profile: the profile.
        nodes: where to start, shape (n,).
        frames: which frames to stop at, shape (frames,).

    Returns:
        Node ids, shape (n,), `NO_NODE` where there is none.
    """
    tree = profile.tree
    stops = frames[tree.frame]
    at = nodes.astype(np.int64)
    moving = np.flatnonzero(~stops[at])
    while len(moving):
        at[moving] = tree.parent[at[moving]]
        alive = at[moving] != NO_NODE
        moving = moving[alive][~stops[at[moving[alive]]]]
    return at


def by_line(
    query: Query, metric: str, least: float = 0, is_user: Mask | None = None
) -> list[Location]:
    """Group nodes by the line of the user's own code above them, costliest first.

    Args:
        query: which nodes; those below others of them are counted in these.
        metric: what they cost, with descendants.
        least: groups that cost less, in the metric's unit, are left out.
        is_user: `FrameTable.is_user_code`, when it is known already.
    """
    return _locations(query, metric, least, query.profile.frames.source_line(), is_user)


def by_function(
    query: Query, metric: str, least: float = 0, is_user: Mask | None = None
) -> list[Location]:
    """Group nodes by the function of the user's own code above them; see `by_line`."""
    frames = query.profile.frames
    return _locations(
        query, metric, least, (frames.file.astype(np.int64) << 32) | frames.name, is_user
    )


def _locations(
    query: Query, metric: str, least: float, key_of_frame: Ints, is_user: Mask | None
) -> list[Location]:
    profile = query.profile
    nodes = outermost(query).nodes()
    if not len(nodes):
        return []
    owner = climb(profile, nodes, profile.frames.is_user_code() if is_user is None else is_user)
    key = np.where(owner == NO_NODE, -1, key_of_frame[profile.tree.frame[owner]])
    value = profile.inclusive(metric)[nodes]
    order = np.lexsort((nodes, -value, key))
    starts = np.flatnonzero(np.diff(key[order], prepend=key[order[0]] - 1))
    ends = np.append(starts[1:], len(order))
    sums = np.add.reduceat(value[order], starts)
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
    locations = []
    for group in np.flatnonzero(sums >= least).tolist():
        members = order[starts[group] : ends[group]]
        top = int(owner[members[0]])
        ids = nodes[members]
        locations.append(
            Location(
                frame=None if top == NO_NODE else profile.frame(top),
                nodes=tuple(ids.tolist()),
                value=int(sums[group]),
                count=int(calls[ids].sum()),
            )
        )
    return sorted(locations, key=lambda location: (-location.value, location.nodes))


def location_text(profile: Profile, frame: Frame | None) -> str:
    """Return ``train.py:31 (train_step)``, the file relative to the run's folder."""
    if frame is None:
        return "code that is not your own"
    folder = profile.run.cwd.rstrip("/") + "/"
    file = frame.file.removeprefix(folder) if profile.run.cwd else frame.file
    function = _RESUMED.sub(r"\1", frame.name)
    return f"{file}:{frame.line} ({function})"


def decorate(decorator: str, function: str) -> str:
    """Say where a decorator goes: ``put @jax.jit on 'step'``, or where there is nothing to put it on."""
    if function.rpartition(".")[2].startswith("<"):  # a module's body, a lambda
        return f"make these lines a function and put {decorator} on it"
    return f"put {decorator} on '{function}'"


def forward_inclusive(profile: Profile, metric: str) -> Ints:
    """Return the metric with descendants, backward operators left out, shape (nodes,)."""
    tree = profile.tree
    return tree.inclusive(np.where(tree.phase == Phase.BACKWARD, 0, profile.exclusive(metric)))
