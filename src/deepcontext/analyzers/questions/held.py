"""Is memory held longer than needed: from step to step, by graphs, views, files, or twice?

Needs the metrics `growth_bytes`, `peak_bytes` and `alloc_bytes`, for devices with the prefix ``gpu_``; for
JAX the compiler's figures about programs. Which object holds tensors is known where the profiler looked
(`shared/held_tensors.py`). A peak has one cause: the first that is found in the order of `_peak`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from deepcontext.analyzers import catalogue
from deepcontext.analyzers.causes import Cause
from deepcontext.analyzers.finding import Severity
from deepcontext.analyzers.shared import held_tensors
from deepcontext.analyzers.shared import source_locations as at
from deepcontext.analyzers.shared.backward_passes import links_backwards
from deepcontext.analyzers.shared.called_operators import called_by_user
from deepcontext.analyzers.shared.jax_calls import calls_of
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import BUILT_GRAPH, CALL_DURATION_NS
from deepcontext.profiler.model.grouping import Groups, sums
from deepcontext.profiler.model.metric_values import counts_or_zeros, exclusive_or_zeros, total
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries import memory as memory_summary
from deepcontext.profiler.summaries.basis import basis_of
from deepcontext.profiler.summaries.jax import memory as jax_memory
from deepcontext.profiler.summaries.lines import nearest_user

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.holders import Holder
    from deepcontext.profiler.summaries.memory import GrownLine

_MIB: Final = 1 << 20
# A smaller peak is no problem; smaller activations fit into every device used for training.
_LEAST_PEAK: Final = 64 * _MIB
_LEAST_ACTIVATIONS: Final = 1024 * _MIB
_LEAST_SHARE: Final = 0.50
# Held for a graph alone, or from call to call.
_LEAST_GRAPH_SHARE: Final = 0.25
_LEAST_GRAPH: Final = 16 * _MIB
# Of a device's memory: below, a smaller peak changes nothing.
_SCARCE: Final = 0.5
# Allocations of data that a program works on, and their bytes by those held at the peak.
_MANY_ALLOCATIONS: Final = 1000
_ALLOCATED_ONCE: Final = 1.05
_FEWEST_CALLS: Final = 16
# Of what was ever allocated, or of the calls: the last one's may be the only one that is not kept, or was
# freed.
_KEPT: Final = 0.9
_FEWEST_PIECES: Final = 32
# Of a compiled program: share of the memory that it uses while it runs, and of its observed launches.
_LEAST_DONATED: Final = 0.20
_LEAST_FED_BACK: Final = 0.5


def find(profile: Profile) -> Iterator[Cause]:
    """Return what holds memory."""
    for prefix in memory_summary.prefixes(profile):
        peak = total(profile, f"{prefix}peak_bytes")
        leaks = list(_leaks(profile, prefix))
        yield from leaks
        if peak < _LEAST_PEAK:
            if not leaks and not prefix:
                yield from _held_graphs(profile)
            continue
        yield from _peak(profile, prefix, peak, is_growing=bool(leaks))
    for program in jax_memory.program_memory(profile) if at.has_jax(profile) else ():
        if program.run_bytes >= _LEAST_PEAK:
            yield from _of_program(profile, program)


def _peak(profile: Profile, prefix: str, peak: int, *, is_growing: bool) -> Iterator[Cause]:
    """Return the first cause of a peak."""
    graphs = list(_unused_graphs(profile, prefix, peak))
    held = list(_held_graphs(profile)) if not (graphs or is_growing or prefix) else []
    yield from held or graphs
    if graphs:
        return
    found = [] if is_growing or held else list(_results(profile, prefix, peak))
    if not (found or held):
        found = list(_growing_calls(profile, prefix, peak))
    yield from found or _owner(profile, prefix, peak)


def _cause(
    profile: Profile, prefix: str, key: str, nodes: Sequence[int], value: int, **more: Any
) -> Cause:
    """Return a cause of a peak, with the object that holds what was made at the first node."""
    metric = f"{prefix}peak_bytes"
    frame = at.frame_of(profile, nodes[0])
    holder = held_tensors.holder_of(profile, frame.file, frame.line) if frame else None
    told = {
        "memory": _memory(prefix),
        "held": f"; {held_tensors.text(holder)}" if holder else "",
        "advice": held_tensors.advice(holder) if holder else _KEEPING,
    }
    return Cause(
        key=key,
        nodes=nodes,
        frame=frame,
        metric=metric,
        value=value,
        words={**told, **more.pop("words", {})},
        evidence=held_tensors.evidence(holder) if holder else {},
        **more,
    )


_KEEPING: Final = (
    "look for code that keeps the tensors of past steps: a list of tensors, an iterator that keeps "
    "what it has given (itertools.cycle, tee), or a loss that is summed without .item(), float() or "
    ".detach(). Keep only what is needed of each call (a number, a slice that is copied with "
    ".clone()): a closure or an exception, whose traceback holds the variables of its functions, "
    "keeps tensors, too; a profile with --holders names "
    "the object"
)


def _memory(prefix: str) -> str:
    return "device memory" if prefix else "memory"


def _leaks(profile: Profile, prefix: str) -> Iterator[Cause]:
    """Find the lines under which memory grows: one cause for those of one holder, and for the rest."""
    metric, use = f"{prefix}growth_bytes", memory_summary.memory_use(profile)
    # Without steps, most programs that collect the results of calls do so on purpose.
    if metric not in profile.metrics or use is None or use.step_kind == "call":
        return
    lines = memory_summary.grown_lines(profile, prefix)
    rows = lines.rows(profile.frames, np.flatnonzero(lines.is_leak))
    if not rows:
        return
    suspects = {(each.file, each.line): each for each in rows}
    of_holder: dict[Holder | None, list[tuple[at.Location, GrownLine]]] = {}
    least = min(each.size_bytes for each in rows)
    for location in at.by_line(Query(profile, profile.exclusive(metric) > 0), metric, least):
        frame = location.frame
        grown = suspects.get((frame.file, frame.line)) if frame else None
        if frame and grown is not None:
            holder = held_tensors.holder_of(profile, frame.file, frame.line)
            of_holder.setdefault(holder, []).append((location, grown))
    for holder, found in of_holder.items():
        grown, size = found[0][1], sum(each.value for each, _ in found)
        nodes = found[0][0].nodes
        if len(found) > 1:
            nodes = tuple(node for each, _ in found for node in each.nodes[:2])
        yield Cause(
            key="grows_from_step_to_step",
            nodes=nodes,
            frame=found[0][0].frame,
            words={
                "memory": _memory(prefix),
                "others": f" and {len(found) - 1} more lines" if len(found) > 1 else "",
                "grown": grown.grown_steps,
                "steps": grown.steps,
                "held": f"; {held_tensors.text(holder)}" if holder else "",
                "advice": held_tensors.advice(holder) if holder else _KEEPING,
            },
            evidence={
                metric: size,
                "step_growth_bytes": size // grown.steps,
                "grown_steps_count": grown.grown_steps,
                **(held_tensors.evidence(holder) if holder else {}),
            },
        )


def _held_graphs(profile: Profile) -> Iterator[Cause]:
    for holder, frame, nodes in held_tensors.kept_graphs(profile):
        yield Cause(
            key="graphs_held_by_object",
            nodes=nodes,
            frame=frame,
            words={"held": held_tensors.text(holder), "advice": held_tensors.advice(holder)},
            evidence=held_tensors.evidence(holder),
        )


def _unused_graphs(profile: Profile, prefix: str, peak: int) -> Iterator[Cause]:
    """Find modules that run with gradients enabled while no backward uses their graph.

    A module with a backward below it is never named; nor is any where backwards are not linked to their
    forwards.
    """
    if BUILT_GRAPH.name not in profile.metrics or not links_backwards(profile):
        return
    tree, frames = profile.tree, profile.frames
    outermost = tree.outermost(profile.is_kind(FrameKind.MODULE))
    outermost = outermost[~tree.at_or_above(tree.phase == Phase.BACKWARD)[outermost]]
    builds = tree.at_or_above(counts_or_zeros(profile, BUILT_GRAPH.name) > 0)
    owner = nearest_user(profile)[outermost]
    is_called = builds[outermost] & (owner != NO_NODE)
    modules, owner = outermost[is_called], owner[is_called]
    held = profile.inclusive(f"{prefix}peak_bytes")
    groups = Groups.of(frames.source_line()[tree.frame[owner]], largest=held[modules])
    least = max(_LEAST_GRAPH, _LEAST_GRAPH_SHARE * peak)
    for rows in groups:
        members = modules[rows].tolist()
        # A graph holds no more than all of its modules, and few lines hold that much.
        if int(held[members].sum()) < least:
            continue
        value = _held_by_graph(profile, prefix, members)
        if value >= least:
            name = profile.frame(members[0]).name
            severity = Severity.HIGH if 2 * value >= peak else Severity.WARNING
            key = "graph_without_backward"
            yield _cause(
                profile, prefix, key, members, value, words={"name": name}, severity=severity
            )


def _held_by_graph(profile: Profile, prefix: str, modules: Sequence[int]) -> int:
    """Return the bytes that modules hold at the peak beyond what they would hold without a graph.

    Without a graph, a program may still keep the results of one layer of all calls, and the layer that runs
    holds its input.
    """
    tree = profile.tree
    held = exclusive_or_zeros(profile, f"{prefix}peak_bytes")
    is_inside = np.zeros(len(tree), np.bool_)
    for module in modules:
        is_inside[module : int(tree.subtree_end[module])] = True
    layers = tree.nearest(profile.is_kind(FrameKind.MODULE))[is_inside]
    _, of_node = np.unique(layers, return_inverse=True)
    of_layers = sums(of_node, held[is_inside], int(of_node.max(initial=-1)) + 1)
    rows = basis_of(profile).whole.metrics[f"{prefix}alloc_bytes"]
    most = rows.total if rows.maximum is None else rows.maximum
    largest = int(most[is_inside[rows.node]].max(initial=0))
    return int(of_layers.sum() - of_layers.max(initial=0) - largest)


def _results(profile: Profile, prefix: str, peak: int) -> Iterator[Cause]:
    """Find results with a graph that a program keeps from each of its steps: losses, metrics, outputs."""
    held, allocated = f"{prefix}peak_bytes", f"{prefix}alloc_bytes"
    if not {BUILT_GRAPH.name, allocated} <= set(profile.metrics):
        return
    tree = profile.tree
    outermost = at.outermost(Query(profile, profile.is_kind(FrameKind.OPERATOR))).mask()
    # Operators that a line calls itself; modules are judged as a whole.
    outermost = outermost & ~tree.below(profile.is_kind(FrameKind.MODULE))
    builds = tree.at_or_above(counts_or_zeros(profile, BUILT_GRAPH.name) > 0)
    is_used = tree.at_or_above(tree.phase == Phase.BACKWARD)
    results, pieces = tree.at_or_below(outermost & builds & ~is_used), profile.counts(allocated)
    results &= pieces >= _FEWEST_PIECES
    results &= profile.exclusive(held) >= _KEPT * profile.exclusive(allocated)
    least = max(_LEAST_GRAPH, _LEAST_GRAPH_SHARE * peak)
    for line in at.by_line(Query(profile, results), held, least)[:1]:
        if links_backwards(profile):
            count = int(pieces[list(line.nodes)].max())
            words: dict[str, object] = {"count": count}
            yield _cause(
                profile, prefix, "results_kept_with_graphs", line.nodes, line.value, words=words
            )


def _growing_calls(profile: Profile, prefix: str, peak: int) -> Iterator[Cause]:
    """Find tensors of past calls of a model that a program without steps keeps: lists, exceptions.

    Results that one operator joins afterwards, or that become arrays of NumPy, are collected on purpose.
    """
    use, metric = memory_summary.memory_use(profile), f"{prefix}growth_bytes"
    if use is None or use.step_kind != "call" or use.growth_steps < _FEWEST_CALLS:
        return
    grown = memory_summary.grown_lines(profile, prefix)
    steady = grown.rows(profile.frames, np.flatnonzero(grown.grows_often))
    calls = {(each.file, each.line): each.grown_steps for each in steady}
    # One piece that grows is a cache.
    pieces = profile.tree.inclusive(counts_or_zeros(profile, f"{prefix}peak_bytes"))
    growing = Query(profile, exclusive_or_zeros(profile, metric) > 0)
    lines = [
        each
        for each in at.by_line(growing, metric)
        if each.frame
        and (found := calls.get((each.frame.file, each.frame.line)))
        and int(pieces[list(each.nodes)].sum()) >= found
    ]
    size = sum(each.value for each in lines)
    rows = basis_of(profile).whole.metrics[f"{prefix}alloc_bytes"]
    if size < _LEAST_GRAPH_SHARE * peak:
        return
    joins = profile.tree.at_or_below(at.operators(profile, catalogue.operators("joins")).mask())
    made = at.operators(profile, catalogue.operators("to_numpy")).mask() & called_by_user(profile)
    arrays = int(counts_or_zeros(profile, CALL_DURATION_NS.name)[made].sum())
    is_joined = rows.maximum is not None and (
        2 * int(rows.maximum[joins[rows.node]].max(initial=0)) >= size
    )
    if not is_joined and 2 * arrays < int(pieces[list(lines[0].nodes)].sum()):
        others = f" and {len(lines) - 1} more lines" if len(lines) > 1 else ""
        nodes = tuple(node for each in lines for node in each.nodes[:4])
        words: dict[str, object] = {"others": others}
        yield _cause(
            profile, prefix, "grows_from_call_to_call", nodes, min(size, peak), words=words
        )


def _owner(profile: Profile, prefix: str, peak: int) -> Iterator[Cause]:
    """Find the line that allocated most of what is in use at the peak, as far as it can be less."""
    metric = f"{prefix}peak_bytes"
    held = Query(profile, profile.exclusive(metric) > 0)
    for line in at.by_line(held, metric, _LEAST_SHARE * peak)[:1]:
        # A single line with all the memory carries no information; a model with fewer parameters is another
        # program.
        if line.value == peak or _is_mostly(profile, f"{prefix}peak_parameter_bytes", line):
            continue
        if _is_kept(profile, prefix, line):
            continue  # data that the program works on: a server's pool, weights, a table
        is_activation = _is_mostly(profile, f"{prefix}peak_activation_bytes", line)
        if peak >= _LEAST_ACTIVATIONS or not is_activation:
            smallest = at.least_of_devices(profile, "memory_bytes") if prefix else 0
            is_scarce = 0 < _SCARCE * smallest <= peak
            severity = Severity.WARNING if is_scarce else Severity.INFO
            key = "line_holds_the_peak"
            yield _cause(profile, prefix, key, line.nodes, line.value, severity=severity)


def _is_mostly(profile: Profile, metric: str, line: at.Location) -> bool:
    held = profile.inclusive(metric)[list(line.nodes)] if metric in profile.metrics else 0
    return int(np.sum(held)) >= _LEAST_SHARE * line.value


def _is_kept(profile: Profile, prefix: str, line: at.Location) -> bool:
    """Return whether a line allocated only a few times, and all its memory was held at the peak."""
    metric = f"{prefix}alloc_bytes"
    if metric not in profile.metrics:
        return False
    allocated = int(profile.inclusive(metric)[list(line.nodes)].sum())
    count = int(profile.tree.inclusive(profile.counts(metric))[list(line.nodes)].sum())
    return allocated <= _ALLOCATED_ONCE * line.value and count < _MANY_ALLOCATIONS


def _of_program(profile: Profile, program: jax_memory.ProgramMemory) -> Iterator[Cause]:
    """Find state that a program takes and returns while both are kept, and temporary memory."""
    donated = min(program.argument_bytes, program.output_bytes) - program.alias_bytes
    is_fed_back = program.fed_back_share >= _LEAST_FED_BACK
    sizes = {
        "arguments_not_donated": donated if is_fed_back else 0,
        "temporary_memory_of_program": program.temp_bytes,
    }
    least = (_LEAST_DONATED * program.run_bytes, max(_LEAST_SHARE * program.run_bytes, _LEAST_PEAK))
    for (key, size), smallest in zip(sizes.items(), least, strict=True):
        if size >= max(smallest, 1):
            yield Cause(
                key=key,
                nodes=calls_of(profile, program.program),
                metric="memory_in_use_bytes",
                value=size,
                whole=program.run_bytes,
                words={"program": program.program},
                evidence={
                    "argument_bytes": program.argument_bytes,
                    "output_bytes": program.output_bytes,
                    "temp_bytes": program.temp_bytes,
                    "fed_back_share": program.fed_back_share,
                },
            )
