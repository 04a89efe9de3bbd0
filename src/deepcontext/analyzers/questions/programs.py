"""Do compiled programs compute, move or transform more than their results need?

Works on the operations of compiled programs, by the lines of the program's own code. Silent where most
launches of programs were not timed, or where the device takes little of the run.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.causes import Cause
from deepcontext.analyzers.finding import Severity
from deepcontext.analyzers.shared import source_locations as at
from deepcontext.analyzers.shared.called_operators import NO_FUNCTION, functions_of_nodes
from deepcontext.analyzers.shared.jax_calls import function_of
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import BYTES_MOVED
from deepcontext.profiler.model.grouping import Groups, sums
from deepcontext.profiler.model.metric_values import exclusive_or_zeros, inclusive_or_zeros, total
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.source import is_user_file
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.jax import operations as jax_operations
from deepcontext.profiler.summaries.jax import programs as jax_programs
from deepcontext.profiler.summaries.jax.programs import plain_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepcontext.profiler.model.profile import Profile

_TIME: Final = at.DEVICE_TIME
_FLOPS: Final = "flops"
# With a smaller share of the elapsed time, the program does not wait for the device.
_LEAST_BUSY: Final = 0.05
_LEAST_SHARE: Final = 0.10
# Arrays that are prepared once are not worth a change.
_FEWEST_LAUNCHES: Final = 5
# Runs of an operation for each launch of its program, from which on the operation is in a loop. A loop
# passes counters and small states on, at 0.6 us a copy of 8 bytes or of 1 KiB (measured); a page at 10 GB/s
# takes less. Of a program's time, in copies: what the program computes could be a part of another program.
_RUNS_IN_LOOP: Final = 1.5
_LEAST_BYTES: Final = 4096
_MOSTLY_MOVES: Final = 0.5
# XLA names a fusion after its operations: "transpose_copy_fusion".
_MOVES: Final = ("copy", "transpose")
# Runs in the forward by runs in the recomputation, for one line; and launches of a value by those of its
# gradient, whose program may leave out what only the value needs. Both are sampled.
_COMPUTED_BEFORE: Final = 0.8
_FEWEST_VALUES: Final = 10
_TOGETHER: Final = 0.9
# Fusions: share of the time; share below which a rate is noise; position on the roofline: a fusion that
# reads and writes at full speed reaches 0.5 to 0.7 of a product that only reads, because a store reads its
# cache line first, and 0.33 to 0.43 where other programs use the processors (measured); flop per byte below
# which arithmetic limits no CPU or GPU.
_LEAST_FUSION: Final = 0.15
_LEAST_TIMED: Final = 0.01
_NEAR_THE_ROOF: Final = 0.25
_MEMORY_BOUND: Final = 1.0
_RUNS_BESIDE: Final = 0.5


def find(profile: Profile) -> Iterator[Cause]:
    """Return what compiled programs do in vain."""
    busy = at.judged_total(profile, _TIME)
    if not busy or busy < _LEAST_BUSY * profile.run.wall_ns:
        return
    yield from _recomputed(profile)
    yield from _beside_gradients(profile)
    if at.has_jax(profile):
        yield from _memory_bound(profile)
    yield from _moved(profile)


def _ordered(profile: Profile, mask: at.Mask) -> list[int]:
    """Return some nodes, those with most device time first."""
    nodes = np.flatnonzero(mask)
    cost = inclusive_or_zeros(profile, _TIME)[nodes]
    found: list[int] = nodes[np.argsort(-cost, kind="stable")].tolist()
    return found


def _recomputed(profile: Profile) -> Iterator[Cause]:
    """Find values that were computed twice, forward and again for the backward.

    XLA merges equal computations of one program and gives the operation either name, so a line that ran less
    often in the forward was not computed twice.
    """
    times, counts = profile.exclusive(_TIME), profile.counts(_TIME)
    first = _by_line(profile, Phase.FORWARD, counts)
    spent, runs = (_by_line(profile, Phase.RECOMPUTE, each) for each in (times, counts))
    value = sum(
        time
        for line, time in spent.items()
        if first.get(line, 0) >= _COMPUTED_BEFORE * runs.get(line, 0)
    )
    if value:
        again = profile.tree.phase == Phase.RECOMPUTE
        nodes = np.flatnonzero(again)
        yield Cause(
            key="forward_computed_again",
            nodes=nodes[np.argsort(-times[nodes], kind="stable")].tolist(),
            metric=_TIME,
            value=value,
        )


def _by_line(profile: Profile, phase: Phase, values: at.Ints) -> dict[int, int]:
    """Return the sum of values over operations of a phase, by line of user code."""
    nodes = np.flatnonzero((profile.tree.phase == phase) & (values > 0))
    owner = at.climb(profile, nodes, profile.is_user_code())
    line = profile.frames.source_line()[profile.tree.frame[owner]]
    groups = Groups.of(np.where(owner == NO_NODE, -1, line))
    return dict(zip(groups.key.tolist(), groups.sums(values[nodes]).tolist(), strict=True))


def _beside_gradients(profile: Profile) -> Iterator[Cause]:
    """Find programs whose work is also the forward of a gradient that one function launches as often."""
    if at.JAX_LAUNCHES not in profile.metrics:
        return
    tree, launches = profile.tree, profile.exclusive(at.JAX_LAUNCHES)
    functions, spent = functions_of_nodes(profile), profile.inclusive(_TIME)
    is_program = (launches >= _FEWEST_VALUES) & (functions != NO_FUNCTION)
    is_backward = (tree.phase == Phase.BACKWARD) & (profile.exclusive(_TIME) > 0)
    gradients = is_program & tree.at_or_above(is_backward)
    for gradient in np.flatnonzero(gradients).tolist():
        same = is_program & ~gradients & (functions == functions[gradient])
        for value in np.flatnonzero(same & (spent >= at.little(profile, _TIME))).tolist():
            few, many = sorted((int(launches[value]), int(launches[gradient])))
            own, forward = _lines(profile, value), _lines(profile, gradient, Phase.FORWARD)
            common = sum(time for line, time in own.items() if line in forward)
            # The compiler gives a fusion of several lines to the line that calls them all.
            if few >= _TOGETHER * many and common >= _COMPUTED_BEFORE * sum(own.values()) > 0:
                words = {
                    "name": profile.frame(value).name,
                    "gradient": at.place_text(profile, gradient),
                }
                yield Cause(
                    key="value_beside_gradient",
                    nodes=(value, gradient),
                    weights=(1, 0),
                    frame=at.frame_of(profile, value),
                    metric=_TIME,
                    value=int(spent[value]),
                    words=words,
                    evidence={"launches_count": int(launches[value])},
                )


def _lines(profile: Profile, program: int, phase: Phase | None = None) -> Counter[int]:
    """Return the device time of a program's lines, ns; in a phase, with that of the lines they call."""
    tree, times = profile.tree, profile.exclusive(_TIME)
    line, found = profile.frames.source_line(), Counter[int]()
    inside = np.arange(program + 1, int(tree.subtree_end[program]))
    chosen = inside[(times[inside] > 0) & ((tree.phase[inside] == phase) | (phase is None))]
    for node in chosen.tolist():
        steps = [step for step in tree.path(node) if step > program]
        python = [s for s in steps if profile.frame(s).kind is FrameKind.PYTHON]
        wanted = python if phase is not None else python[-1:]
        found.update({int(line[tree.frame[step]]): int(times[node]) for step in wanted})
    return found


def _moved(profile: Profile) -> Iterator[Cause]:
    """Find operations that only move values, whether written by the user or inserted by XLA."""
    named = at.nodes_named(
        profile, FrameKind.HLO, lambda name: any(each in name for each in _MOVES)
    ).mask()
    if _FLOPS in profile.metrics:
        named = named & (profile.exclusive(_FLOPS) == 0)
    moves = Query(profile, named)
    value = moves.total(_TIME)
    if value < at.little(profile, _TIME):
        return
    markers = at.nodes_named(profile, FrameKind.MARKER, {jax_programs.INSERTED})
    lines = at.by_line(moves, _TIME)
    yield Cause(
        key="arrays_moved_in_programs",
        nodes=[node for location in lines for node in location.nodes],
        frame=lines[0].frame,
        metric=_TIME,
        value=value,
        saved=at.bound_of_copies(profile, _TIME, value).upper_bound,
        severity=None if _is_avoidable(profile, moves) else Severity.INFO,
        words={"inserted": moves.under(markers).total(_TIME) / value},
    )


def _is_avoidable(profile: Profile, moves: Query) -> bool:
    """Return whether enough of the moves have a cause that the program can change.

    XLA also inserts copies for first values of loops and for layouts that its products prefer, which no
    program avoids. Avoidable are moves that the program writes, copies in each pass of a loop that changes a
    part of the copied array, unless these are tiny, and copies that are most of a program.
    """
    tree, nodes = profile.tree, moves.nodes()
    launches = exclusive_or_zeros(profile, at.JAX_LAUNCHES)
    program = tree.nearest(launches > 0)[nodes]
    nodes, program = nodes[program != NO_NODE], program[program != NO_NODE]
    if not len(nodes):
        return False
    launched, runs = launches[program], profile.counts(_TIME)[nodes]
    spent, whole = profile.exclusive(_TIME)[nodes], profile.inclusive(_TIME)[program]
    _, of_program = np.unique(program, return_inverse=True)
    in_loop = runs > _RUNS_IN_LOOP * launched
    moved = sums(of_program, spent * ~in_loop, int(of_program.max()) + 1)[of_program]
    markers = at.nodes_named(profile, FrameKind.MARKER, {jax_programs.INSERTED})
    is_written = ~tree.at_or_below(markers.mask())[nodes]
    is_small = exclusive_or_zeros(profile, BYTES_MOVED.name)[nodes] < _LEAST_BYTES * runs
    is_small &= BYTES_MOVED.name in profile.metrics
    changing = in_loop & ~is_small
    changing[changing] = _are_of_updated(profile, nodes[changing], program[changing])
    avoidable = is_written | changing | (~in_loop & (moved > _MOSTLY_MOVES * whole))
    value = int(spent[avoidable & (launched >= _FEWEST_LAUNCHES)].sum())
    return value >= _LEAST_SHARE * total(profile, _TIME)


def _are_of_updated(profile: Profile, nodes: at.Ints, program: at.Ints) -> at.Mask:
    """Return which copies have the shape of an array of which their program changes a part."""
    shapes: dict[tuple[str, str], str] = {}
    updated: set[tuple[str, str]] = set()
    for each in jax_operations.operations(profile):
        shapes[function_of(each.program), each.name] = each.shape
        if each.updates_in_place:
            updated.add((function_of(each.program), each.shape))
    found = []
    for node, call in zip(nodes.tolist(), program.tolist(), strict=True):
        function = plain_name(profile.frame(call).name)
        found.append((function, shapes.get((function, profile.frame(node).name), "")) in updated)
    return np.array(found, np.bool_)


def _memory_bound(profile: Profile) -> Iterator[Cause]:
    """Find fusions that move memory, against the best rates of this profile as a roofline."""
    whole, operations = total(profile, _TIME), jax_operations.operations(profile)
    timed = [each for each in operations if each.device_ns >= _LEAST_TIMED * whole]
    bandwidth = max((each.bytes_per_second for each in timed), default=0.0) or 1.0
    rate = max((each.flops_per_second for each in timed), default=0.0) or 1.0
    dense = [each for each in operations if each.is_dense]
    for fusion in jax_operations.fusions(profile):
        is_move = not fusion.flops and any(each in fusion.name for each in _MOVES)
        if fusion.device_ns < _LEAST_FUSION * whole or is_move or not fusion.bytes:
            continue
        if fusion.intensity >= _MEMORY_BOUND:
            continue
        # Source: Williams, Waterman and Patterson, "Roofline", CACM 52(4), 2009.
        by_rate = fusion.flops and fusion.intensity * bandwidth > rate
        position = (
            fusion.flops_per_second / rate if by_rate else fusion.bytes_per_second / bandwidth
        )
        position = min(position, 1.0)
        is_far = position < _NEAR_THE_ROOF
        # XLA folds a fusion into a product of the same program where that pays.
        beside = [each for each in dense if each.executions >= _RUNS_BESIDE * fusion.executions]
        is_apart = bool(beside) and not any(each.program == fusion.program for each in dense)
        lines = dict.fromkeys(
            f"{Path(member.source.file).name}:{member.source.line}"
            for member in fusion.members
            if member.source.line and is_user_file(member.source.file)
        )
        yield Cause(
            key="fusion_far_from_roofline" if is_far else "fusion_bound_by_memory",
            nodes=_ordered(profile, at.nodes_named(profile, FrameKind.HLO, {fusion.name}).mask()),
            metric=_TIME,
            value=fusion.device_ns,
            saved=round(fusion.device_ns * (1 - position)) if is_far else None,
            severity=None if is_apart else Severity.INFO,
            words={
                "name": fusion.name,
                "program": fusion.program,
                "intensity": fusion.intensity,
                "rate": fusion.bytes_per_second / 1e9,
                "position": position,
            },
            evidence={
                "flops_per_byte": round(fusion.intensity, 3),
                "of_roofline_share": position,
                "lines": ", ".join(list(lines)[:6]),
            },
        )
