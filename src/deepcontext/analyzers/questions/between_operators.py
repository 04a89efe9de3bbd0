"""Does Python, or a library, work between operators in each step: at which line, and on what?

Loops over small operators, data loading, and time in frameworks (calling modules, starting a backward pass)
are others' to tell, or no line's to change. Needs samples, and steps or a loop over operators.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.causes import ELAPSED, Cause
from deepcontext.analyzers.shared import libraries
from deepcontext.analyzers.shared import source_locations as at
from deepcontext.analyzers.shared.called_operators import entered, functions_of_nodes, model_calls
from deepcontext.analyzers.shared.repeated_lines import (
    before_steps,
    grows,
    has_operator_clock,
    has_steps,
    repeated,
)
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import (
    CALL_DURATION_NS,
    GC_TIME_NS,
    HOST_TIME_NS,
    SAMPLED_CPU_TIME_NS,
    SAMPLED_READY_TIME_NS,
    SAMPLED_WAIT_TIME_NS,
)
from deepcontext.profiler.model.grouping import sums
from deepcontext.profiler.model.metric_values import (
    counts_or_zeros,
    exclusive_or_zeros,
    inclusive_or_zeros,
    total,
)
from deepcontext.profiler.model.package import package_of
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries import time_between_operators
from deepcontext.profiler.summaries.lines import nearest_user
from deepcontext.profiler.summaries.setup_time import importing, setup_time
from deepcontext.profiler.summaries.steps import step_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.profile import Profile

_GC: Final = GC_TIME_NS.name
_CPU: Final = SAMPLED_CPU_TIME_NS.name
_LEAST_SHARE: Final = 0.15
# Fewer than ten samples at the usual rate say little about a share.
_LEAST_NS: Final = 100_000_000
# In a program without steps; with less, operators are not what the program is about.
_LEAST_OPERATORS: Final = 0.2
# What a program calls a model for again and again is what it is about, however little the model takes.
_FEWEST_MODEL_CALLS: Final = 32
# Calling an operator takes Python and PyTorch a few microseconds; work takes much longer.
_MOST_CALLING_NS: Final = 50_000
_FEWEST_COLLECTIONS: Final = 5
# Of collections, those in a function that makes the objects, whose work takes much more.
_MOST_OF_COLLECTIONS: Final = 0.8
_MUCH_MORE: Final = 2


def find(profile: Profile) -> Iterator[Cause]:
    """Return the lines that work between operators."""
    setup = setup_time(profile)
    if setup is None or setup.working_ns <= 0:
        return
    whole = setup.working_ns
    collected = _collections(profile, whole)
    if not has_steps(profile) and not _loops_over_operators(profile, whole):
        yield from [collected] if collected else []
        return
    # Where collections have a cause of their own, their time is no other line's.
    nothing = np.zeros(len(profile.tree), np.int64)
    pauses = exclusive_or_zeros(profile, _GC) if collected else nothing
    least = max(_LEAST_SHARE * whole, _LEAST_NS)
    work = _work(profile, least, pauses)
    if collected and any(_makes(profile, each, collected) for each in work):
        collected, work = None, _work(profile, least, nothing)
    yield from [collected] if collected else []
    for each in work:
        yield from _cause(profile, each, whole)


def _loops_over_operators(profile: Profile, whole: int) -> bool:
    """Return whether operators are what a program without steps does, again and again."""
    if not has_operator_clock(profile):
        return False
    spent = at.judged_total(profile, HOST_TIME_NS.name)
    return spent >= _LEAST_OPERATORS * whole or model_calls(profile) >= _FEWEST_MODEL_CALLS


@dataclass(frozen=True, slots=True)
class _Work:
    """Time of one function of the user's between operators.

    Attributes:
        frame: its line with most of the time.
        nodes: nodes of this line, those with most time first; `weights`: time of each, ns.
        value: time of the function, ns.
        called: the frame that the line called and that has most of the time, `frame` if none; `runs_ns`: host
            time of the operators that such frames run.
    """

    frame: Frame
    nodes: tuple[int, ...]
    weights: tuple[int, ...]
    value: int
    called: Frame
    runs_ns: int


def _work(profile: Profile, least: float, counted: at.Ints) -> list[_Work]:
    """Return the functions whose lines work between operators for at least `least` ns.

    Args:
        profile: the profile.
        least: functions with less time are left out, ns.
        counted: time of each node that another cause counts, ns, shape (nodes,).
    """
    tree, frames = profile.tree, profile.frames
    entry = entered(profile)
    values = np.where(_is_judged(profile, entry), _time(profile, entry), 0)
    owner = nearest_user(profile)
    nodes = np.flatnonzero((values > 0) & (owner != NO_NODE))
    if not len(nodes):
        return []
    source_line = frames.source_line()[tree.frame[owner]]
    operators_ns = inclusive_or_zeros(profile, HOST_TIME_NS.name)
    lines, of_node = np.unique(source_line[nodes], return_inverse=True)
    # The same time may be at a line, or at the native function that it calls.
    others = np.flatnonzero((counted > 0) & (owner != NO_NODE) & np.isin(source_line, lines))
    others_ns = sums(np.searchsorted(lines, source_line[others]), counted[others], len(lines))
    left = np.maximum(1 - others_ns / sums(of_node, values[nodes], len(lines)), 0)
    values[nodes] = np.rint(values[nodes] * left[of_node])
    calls = _calls_of_lines(profile, source_line, owner, lines)
    time = sums(of_node, values[nodes], len(lines))
    is_work = (time > _MOST_CALLING_NS * calls)[of_node]
    is_work |= libraries.frames(profile, libraries.prints)[tree.frame[entry[nodes]]]
    nodes = nodes[is_work]
    # A comprehension or a lambda is a part of the function around it.
    _, of_function = np.unique(functions_of_nodes(profile)[nodes], return_inverse=True)
    found = []
    for number in range(int(of_function.max(initial=-1)) + 1):
        members = nodes[of_function == number]
        value = int(values[members].sum())
        if value < least:
            continue
        members = members[np.argsort(-values[members], kind="stable")]
        own, of_member = np.unique(source_line[members], return_inverse=True)
        members = members[of_member == np.argmax(sums(of_member, values[members], len(own)))]
        found.append(
            _Work(
                profile.frame(int(owner[members[0]])),
                tuple(members.tolist()),
                tuple(values[members].tolist()),
                value,
                profile.frame(int(entry[members[0]])),
                int(operators_ns[np.unique(entry[members])].sum()),
            )
        )
    return sorted(found, key=lambda work: -work.value)


def _is_judged(profile: Profile, entry: at.Ints) -> at.Mask:
    """Return which nodes work repeatedly between operators, on a main thread."""
    tree = profile.tree
    is_framework = libraries.frames(profile, libraries.is_framework)
    left_out = at.compiling(profile).mask() | at.scopes(profile, at.LOADER_SCOPE).mask()
    left_out = left_out | at.scopes(profile, "Optimizer.step#").mask()
    return np.asarray(
        repeated(profile)
        & profile.is_kind(FrameKind.PYTHON, FrameKind.NATIVE)  # not inside an operator or a wait
        & time_between_operators.on_main_threads(profile)
        & (entry != NO_NODE)
        & ~is_framework[tree.frame[entry]]
        & ~importing(profile)
        & ~tree.at_or_below(left_out)
        & (tree.phase != Phase.OPTIMIZER)
    )


def _time(profile: Profile, entry: at.Ints) -> at.Ints:
    """Return the time between operators of each node, ns; with waits where a library writes."""
    # A thread that has no processor works, too: on a quieter machine it would run.
    ready = exclusive_or_zeros(profile, SAMPLED_READY_TIME_NS.name)
    working = np.maximum(exclusive_or_zeros(profile, _CPU) + ready, 0)
    waiting = exclusive_or_zeros(profile, SAMPLED_WAIT_TIME_NS.name) - ready
    writes = libraries.frames(profile, libraries.writes)[profile.tree.frame[entry]]
    spent: at.Ints = working + np.where(writes, waiting, 0)
    return spent


def _calls_of_lines(
    profile: Profile, source_line: at.Ints, owner: at.Ints, lines: at.Ints
) -> at.Ints:
    """Return how many operators each line calls itself."""
    operators = at.outermost(Query(profile, profile.is_kind(FrameKind.OPERATOR))).mask()
    operators &= (profile.tree.phase != Phase.BACKWARD) & (owner != NO_NODE)
    nodes = np.flatnonzero(operators & np.isin(source_line, lines))
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)[nodes]
    return sums(np.searchsorted(lines, source_line[nodes]), calls, len(lines))


def _cause(profile: Profile, work: _Work, whole: int) -> Iterator[Cause]:
    line = at.in_lines_of(profile, np.array(work.nodes[:1]))
    launches = int(exclusive_or_zeros(profile, at.JAX_LAUNCHES)[line].sum())
    is_growing = grows(profile, np.array(work.nodes))
    key, what = _kind(work, launches, is_growing=is_growing)
    if not key:
        return
    steps = step_count(profile) if has_steps(profile) else 0
    package = package_of(work.called.file).name if work.called != work.frame else ""
    yield Cause(
        key=key,
        nodes=work.nodes,
        weights=work.weights,
        frame=work.frame,
        metric=ELAPSED,
        value=work.value,
        whole=whole,
        words={"what": what, "growing": ", and more from step to step" if is_growing else ""},
        evidence={
            **({"ns_per_step": work.value // steps} if steps else {}),
            **({"package": package} if package else {}),
        },
    )


def _kind(work: _Work, launches: int, *, is_growing: bool) -> tuple[str, str]:
    """Return the entry that says what to do, "" for none, and what the line does."""
    library = work.called.file if work.called != work.frame else ""
    package = package_of(library).name if library else ""
    of_library = f"work of '{package}'" if package else "Python"
    is_called = launches > 0 and (not package or libraries.flattens(package))
    # The first that holds. That a program computes with arrays says nothing about what to change.
    kinds = (
        (libraries.prints(work.called), "making_texts", "making texts of tensors"),
        (library and libraries.writes(work.called), "reading_or_writing", "reading or writing"),
        (is_called, "flattening_of_arguments", "Python around a call of JAX"),
        (is_growing, "work_on_more_values", of_library),
        (libraries.is_of_arrays(package), "", of_library),
        (package and work.runs_ns >= work.value, "work_around_operators", of_library),
        (package, "work_of_libraries", of_library),
    )
    return next(
        ((key, what) for holds, key, what in kinds if holds), ("work_between_operators", "Python")
    )


def _collections(profile: Profile, whole: int) -> Cause | None:
    """Return Python's garbage collector; collections of less than 20 us are not recorded."""
    pauses = exclusive_or_zeros(profile, _GC)
    # A compiler makes many objects once, the setup does not grow with the training, and what a loader makes
    # is reported with its lines.
    left_out = importing(profile) | profile.tree.at_or_below(profile.is_kind(FrameKind.MARKER))
    left_out |= before_steps(profile)
    chosen = at.apart(Query(profile, (pauses > 0) & ~left_out))
    spent = int(pauses[chosen.mask()].sum())
    count = int(counts_or_zeros(profile, _GC)[chosen.nodes()].sum())
    if count < _FEWEST_COLLECTIONS:
        return None
    line = at.by_line(chosen, _GC)[0]
    return Cause(
        key="collections_of_garbage",
        nodes=line.nodes,
        frame=line.frame,
        metric=ELAPSED,
        value=spent,
        whole=whole,
        words={"count": count, "part": line.value / total(profile, _GC)},
        evidence={"collections_count": count, "mean_gc_ns": spent // count},
    )


def _makes(profile: Profile, work: _Work, collected: Cause) -> bool:
    """Return whether the work of one function makes the objects that are collected."""
    pauses = exclusive_or_zeros(profile, _GC)
    own = int(pauses[at.in_functions_of(profile, np.array(work.nodes[:1]))].sum())
    is_maker = own >= _MOST_OF_COLLECTIONS * pauses.sum() and work.value >= _MUCH_MORE * own
    return bool(is_maker and set(collected.nodes[:8]) & set(work.nodes))
