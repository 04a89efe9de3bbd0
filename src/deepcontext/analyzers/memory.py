"""Memory: lines that only grow, lines that hold memory at the peak, lines that allocate repeatedly.

Needs the metrics `growth_bytes`, `peak_bytes` and `alloc_bytes`, for devices with the prefix ``gpu_``;
for JAX the compiler's figures about programs. Profiles without these give no finding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import held_tensors, source_locations
from deepcontext.analyzers.shared.jax_calls import function_of
from deepcontext.analyzers.shared.jax_histories import unused_histories
from deepcontext.analyzers.shared.kept_by_calls import kept_by_calls
from deepcontext.analyzers.shared.kept_results import kept_results
from deepcontext.analyzers.shared.kept_views import kept_views
from deepcontext.analyzers.shared.loaded_files import loaded_files
from deepcontext.analyzers.shared.retained_graphs import retained_graphs
from deepcontext.analyzers.shared.second_graphs import unused_second_graphs
from deepcontext.analyzers.shared.summed_losses import summed_losses
from deepcontext.analyzers.shared.unused_graphs import unused_graphs
from deepcontext.analyzers.shared.widened_data import widened_data
from deepcontext.profiler.model.metric_values import total
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.summaries import memory as memory_summary
from deepcontext.profiler.summaries.jax import memory as jax_memory

if TYPE_CHECKING:
    from deepcontext.analyzers.shared.source_locations import Location
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.holders import Holder
    from deepcontext.profiler.summaries.jax.memory import ProgramMemory
    from deepcontext.profiler.summaries.memory import GrownLine

_MIB: Final = 1 << 20
# A smaller peak is no problem.
_LEAST_PEAK: Final = 64 * _MIB
# Smaller activations fit into every device used for training.
_LEAST_ACTIVATIONS: Final = 1024 * _MIB
_LEAST_SHARE: Final = 0.50
# Of a device's memory: below, a smaller peak changes nothing.
_SCARCE: Final = 0.5
# Bytes allocated in the run divided by bytes held at once, and allocations at one line.
_LEAST_CHURN: Final = 100.0
_LEAST_ALLOCATIONS: Final = 1000
# Bytes allocated in the run divided by bytes held at the peak.
_ALLOCATED_ONCE: Final = 1.05
# Minimum growth over the observed steps, in bytes and as a share of the peak.
_LEAST_GROWTH: Final = _MIB
_LEAST_GROWTH_SHARE: Final = 0.01
# Memory that grows in every step is not a filling cache; it is judged by its growth in a training run.
_STEPS_OF_A_RUN: Final = 10_000
_LEAST_STEPS: Final = 5
# Share of the memory that a running compiled program uses, and share of its observed launches.
_LEAST_DONATED: Final = 0.20
_LEAST_FED_BACK: Final = 0.5


def _find(profile: Profile) -> list[Finding]:
    found: list[Finding] = []
    for prefix in memory_summary.prefixes(profile):
        peak = total(profile, f"{prefix}peak_bytes")
        leaks = _leaks(profile, prefix, peak or total(profile, jax_memory.PEAK))
        graphs = unused_graphs(profile, prefix, peak) if peak >= _LEAST_PEAK else []
        found += leaks
        kept = [] if leaks or graphs or prefix else held_tensors.kept_graphs(profile)
        found += kept
        if peak >= _LEAST_PEAK:
            if not leaks and not graphs and not kept:
                graphs = kept_results(profile, prefix, peak)
            # A graph, or a view, is why lines hold memory.
            found += (
                [held_tensors.with_holder(profile, each) for each in graphs]
                or unused_second_graphs(profile, prefix, peak)
                or kept_views(profile, prefix, peak)
                or loaded_files(profile, prefix, peak)
                or retained_graphs(profile, prefix, peak)
                or summed_losses(profile, prefix, peak)
                or ([] if kept else kept_by_calls(profile, prefix, peak))
                or _owner(profile, prefix, peak)
            )
            found += _churn(profile, prefix, peak)
    programs = jax_memory.program_memory(profile) if source_locations.has_jax(profile) else ()
    for program in programs:
        if program.run_bytes >= _LEAST_PEAK:
            found += _not_donated(profile, program)
            found += _temporary(profile, program)
    return found + (unused_histories(profile) if programs else [])


def _leaks(profile: Profile, prefix: str, peak: int) -> list[Finding]:
    """Report the lines under which memory grows: one finding for those of one holder, and for the rest."""
    metric = f"{prefix}growth_bytes"
    use = memory_summary.memory_use(profile)
    # Without steps, most programs that collect the results of calls do so on purpose.
    if metric not in profile.metrics or use is None or use.step_kind == "call":
        return []
    lines = memory_summary.grown_lines(profile, prefix)
    suspects = {
        (each.file, each.line): each
        for each in lines.rows(profile.frames, np.flatnonzero(_are_leaks(lines, peak)))
    }
    if not suspects:
        return []
    least = min(each.size_bytes for each in suspects.values())
    of_holder: dict[Holder | None, list[tuple[Location, GrownLine]]] = {}
    for location in source_locations.by_line(
        Query(profile).where(**{f"{metric}__gt": 0}), metric, least
    ):
        frame = location.frame
        grown = suspects.get((frame.file, frame.line)) if frame else None
        if frame and grown is not None:
            holder = held_tensors.holder_of(profile, frame.file, frame.line)
            of_holder.setdefault(holder, []).append((location, grown))
    return [_leak(profile, prefix, holder, lines) for holder, lines in of_holder.items()]


def _leak(
    profile: Profile,
    prefix: str,
    holder: Holder | None,
    lines: list[tuple[Location, GrownLine]],
) -> Finding:
    location, grown = lines[0]
    size = sum(each.value for each, _ in lines)
    others = f" and {len(lines) - 1} more lines" if len(lines) > 1 else ""
    held = f"; {held_tensors.text(holder)}" if holder else ""
    nodes = [node for each, _ in lines for node in each.nodes[:2]] if others else location.nodes
    return Finding(
        id="memory",
        severity=Severity.WARNING,
        title=f"{_memory(prefix)} allocated at "
        f"{source_locations.location_text(profile, location.frame)}{others} "
        f"grew in {grown.grown_steps} of {grown.steps} steps and was not freed{held}",
        nodes=tuple(nodes[:8]),
        evidence={
            f"{prefix}growth_bytes": size,
            "step_growth_bytes": size // grown.steps,
            "grown_steps_count": grown.grown_steps,
            **(held_tensors.evidence(holder) if holder else {}),
        },
        advice=held_tensors.advice(holder) if holder else _LEAK_ADVICE,
        misleads="the program collects its results on purpose",
    )


_LEAK_ADVICE: Final = (
    "look for code that keeps the tensors of past steps: a list of tensors, or a "
    "loss that is summed without .item(), float() or .detach(); a profile with --holders names the object"
)


def _are_leaks(lines: memory_summary.GrownLines, peak: int) -> source_locations.Mask:
    """Return which lines leak, shape (lines,)."""
    size, steps = lines.size_bytes, lines.steps
    is_large = size >= max(_LEAST_GROWTH, _LEAST_GROWTH_SHARE * peak)
    found = lines.is_steady() & is_large
    if steps >= _LEAST_STEPS:
        always = lines.grown_steps == steps
        found[always] = size[always] >= -(-_LEAST_PEAK * steps // _STEPS_OF_A_RUN)
    return found


def _owner(profile: Profile, prefix: str, peak: int) -> list[Finding]:
    metric = f"{prefix}peak_bytes"
    held = Query(profile).where(**{f"{metric}__gt": 0})
    holders = source_locations.by_line(held, metric, _LEAST_SHARE * peak)
    if not holders or holders[0].value == peak:
        return []  # a single line with all the memory carries no information
    share = holders[0].value / peak
    if _is_mostly(profile, prefix, "parameter", holders[0]):
        return []  # a model with fewer parameters is another program
    if _is_kept(profile, prefix, holders[0]):
        # Data that the program works on: a server's pool, weights, a table.
        return widened_data(profile, prefix, holders[0], share)
    if peak < _LEAST_ACTIVATIONS and _is_mostly(profile, prefix, "activation", holders[0]):
        return []  # a small model in training keeps them for its backward
    where = source_locations.location_text(profile, holders[0].frame)
    return [
        Finding(
            id="memory",
            severity=Severity.WARNING if _is_scarce(profile, prefix, peak) else Severity.INFO,
            title=f"{share:.0%} of the {_memory(prefix)} in use at the peak was allocated at {where}",
            nodes=holders[0].nodes[:8],
            evidence={metric: holders[0].value, "peak_share": share},
            gain=Gain(metric, holders[0].value, share, "this line holds nothing at the peak"),
            advice=(
                "free this memory before the peak (del, smaller scope), recompute the tensors "
                "(torch.utils.checkpoint), or keep them in a narrower type"
            ),
            misleads="the program needs all of it at once, so only a smaller batch helps",
        )
    ]


def _is_scarce(profile: Profile, prefix: str, peak: int) -> bool:
    """Return whether the peak is much of what the smallest recorded device has."""
    smallest = source_locations.least_of_devices(profile, "memory_bytes") if prefix else 0
    return 0 < _SCARCE * smallest <= peak


def _is_mostly(profile: Profile, prefix: str, role: str, location: Location) -> bool:
    """Return whether most of a line's memory has a role."""
    metric = f"{prefix}peak_{role}_bytes"
    if metric not in profile.metrics:
        return False
    held = int(profile.inclusive(metric)[list(location.nodes)].sum())
    return held >= _LEAST_SHARE * location.value


def _is_kept(profile: Profile, prefix: str, location: Location) -> bool:
    """Return whether a line allocated only a few times, and all its memory was held at the peak.

    Memory that every step allocates adds up to more than was held at once; memory that a program
    collects has more pieces. A profile does not record whether and how long the rest is needed.
    """
    metric = f"{prefix}alloc_bytes"
    if metric not in profile.metrics:
        return False
    allocated = int(profile.inclusive(metric)[list(location.nodes)].sum())
    return (
        allocated <= _ALLOCATED_ONCE * location.value
        and _allocations(profile, metric, location) < _LEAST_ALLOCATIONS
    )


def _churn(profile: Profile, prefix: str, peak: int) -> list[Finding]:
    metric = f"{prefix}alloc_bytes"
    allocated = total(profile, metric)
    if not allocated or allocated / peak < _LEAST_CHURN:
        return []
    query = Query(profile).where(**{f"{metric}__gt": 0})
    found = source_locations.by_line(query, metric, _LEAST_SHARE * allocated)
    if not found or (count := _allocations(profile, metric, found[0])) < _LEAST_ALLOCATIONS:
        return []
    location = found[0]
    share = location.value / allocated
    return [
        Finding(
            id="memory",
            severity=Severity.INFO,
            title=(
                f"{source_locations.location_text(profile, location.frame)} allocates {share:.0%} "
                f"of all bytes, in {count} pieces"
            ),
            nodes=location.nodes[:8],
            evidence={metric: location.value, "alloc_share": share, "allocations_count": count},
            advice="allocate a buffer once and write into it (out=, in-place operators)",
            misleads="a caching allocator reuses freed memory at little cost",
        )
    ]


def _not_donated(profile: Profile, program: ProgramMemory) -> list[Finding]:
    """Report state that a program takes and returns, while old and new values are both kept."""
    saved = min(program.argument_bytes, program.output_bytes) - program.alias_bytes
    share = saved / program.run_bytes
    if share < _LEAST_DONATED or program.fed_back_share < _LEAST_FED_BACK:
        return []
    return [
        Finding(
            id="memory",
            severity=Severity.WARNING,
            title=f"{program.program} takes its previous results and keeps old and new values at once",
            nodes=_calls_of(profile, program),
            evidence={
                "argument_bytes": program.argument_bytes,
                "output_bytes": program.output_bytes,
                "alias_bytes": program.alias_bytes,
                "fed_back_share": program.fed_back_share,
            },
            gain=Gain(
                "memory_in_use_bytes",
                saved,
                share,
                "all results replace arguments in place",
            ),
            advice="donate the replaced arguments: jax.jit(..., donate_argnums=...)",
            misleads="the old values are needed after the call",
        )
    ]


def _temporary(profile: Profile, program: ProgramMemory) -> list[Finding]:
    share = program.temp_bytes / program.run_bytes
    if share < _LEAST_SHARE or program.temp_bytes < _LEAST_PEAK:
        return []
    return [
        Finding(
            id="memory",
            severity=Severity.INFO,
            title=f"{share:.0%} of the memory of {program.program} while it runs is temporary",
            nodes=_calls_of(profile, program),
            evidence={"temp_bytes": program.temp_bytes, "run_bytes": program.run_bytes},
            gain=Gain(
                "memory_in_use_bytes", program.temp_bytes, share, "no intermediate value is kept"
            ),
            advice=(
                "keep less for the backward (jax.checkpoint around the layers), process the batch in "
                "parts (jax.lax.map, scan), or compute in a narrower type"
            ),
            misleads="everything fits, so using the memory costs nothing",
        )
    ]


def _calls_of(profile: Profile, program: ProgramMemory) -> tuple[int, ...]:
    """Return the nodes of the jitted function that a program was compiled for."""
    name = function_of(program.program)
    return tuple(
        node
        for node in Query(profile).kind("operator").nodes().tolist()
        if jax_memory.plain_name(profile.frame(node).name) == name
    )[:8]


def _allocations(profile: Profile, metric: str, location: Location) -> int:
    """Return how many allocations lie at and below the nodes of a location."""
    inclusive = profile.tree.inclusive(profile.counts(metric))
    return int(inclusive[list(location.nodes)].sum())


def _memory(prefix: str) -> str:
    return "device memory" if prefix else "memory"


ANALYZER = Analyzer(
    "memory", "which lines hold memory at the peak, allocate all the time, or only grow?", _find
)
