"""Memory: which line only grows, which holds memory at the peak, which allocates again and again.

Needs the metrics `growth_bytes`, `peak_bytes` and `alloc_bytes`, for devices with the prefix
``gpu_``; of JAX what the compiler says of its programs. Silent in profiles that have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.model.metric_values import total
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.summaries import memory as memory_summary
from deepcontext.profiler.summaries.jax import memory as jax_memory

if TYPE_CHECKING:
    from deepcontext.analyzers.shared.source_locations import Location
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.jax.memory import ProgramMemory

_MIB: Final = 1 << 20
# Less than this at the peak is no one's worry.
_LEAST_PEAK: Final = 64 * _MIB
# Below, activations fit every device that anybody trains on.
_LEAST_ACTIVATIONS: Final = 1024 * _MIB
_LEAST_SHARE: Final = 0.50
# Allocated over the run by what was held at once, and allocations at one line.
_LEAST_CHURN: Final = 100.0
_LEAST_ALLOCATIONS: Final = 1000
# Allocated over the run by what was held at the peak.
_ALLOCATED_ONCE: Final = 1.05
# What has to be added over the steps looked at, in itself and by what is held at the peak.
_LEAST_GROWTH: Final = _MIB
_LEAST_GROWTH_SHARE: Final = 0.01
# What grows in every step is no cache that fills; it is judged by what a training run would add.
_STEPS_OF_A_RUN: Final = 10_000
_LEAST_STEPS: Final = 5
# Of what a compiled program uses while it runs, and of its launches that were looked at.
_LEAST_DONATED: Final = 0.20
_LEAST_FED_BACK: Final = 0.5


def _find(profile: Profile) -> list[Finding]:
    found: list[Finding] = []
    for prefix in memory_summary.prefixes(profile):
        peak = total(profile, f"{prefix}peak_bytes")
        found += _leaks(profile, prefix, peak or total(profile, jax_memory.PEAK))
        if peak >= _LEAST_PEAK:
            found += _owner(profile, prefix, peak)
            found += _churn(profile, prefix, peak)
    programs = jax_memory.program_memory(profile) if source_locations.has_jax(profile) else ()
    for program in programs:
        if program.run_bytes >= _LEAST_PEAK:
            found += _not_donated(profile, program)
            found += _temporary(profile, program)
    return found


def _leaks(profile: Profile, prefix: str, peak: int) -> list[Finding]:
    metric = f"{prefix}growth_bytes"
    if metric not in profile.metrics:
        return []
    suspects = {
        (each.file, each.line): each
        for each in memory_summary.grown_lines(profile, prefix)
        if _is_leak(each, peak)
    }
    if not suspects:
        return []
    found = []
    least = min(each.size_bytes for each in suspects.values())
    for location in source_locations.by_line(
        Query(profile).where(**{f"{metric}__gt": 0}), metric, least
    ):
        frame = location.frame
        grown = suspects.get((frame.file, frame.line)) if frame else None
        if grown is not None:
            found.append(
                Finding(
                    id="memory",
                    severity=Severity.WARNING,
                    title=f"{_memory(prefix)} allocated at {source_locations.location_text(profile, frame)} "
                    f"grew in {grown.grown_steps} of {grown.steps} steps and was not given back",
                    nodes=location.nodes[:8],
                    evidence={
                        metric: location.value,
                        "step_growth_bytes": location.value // grown.steps,
                        "grown_steps_count": grown.grown_steps,
                    },
                    advice=(
                        "look for what keeps the tensors of past steps: a list they are appended "
                        "to, a loss that is summed without .item(), float() or .detach()"
                    ),
                    misleads="the program collects its results on purpose",
                )
            )
    return found


def _is_leak(grown: memory_summary.GrownLine, peak: int) -> bool:
    size = grown.size_bytes
    if grown.grown_steps == grown.steps >= _LEAST_STEPS:
        return size * _STEPS_OF_A_RUN >= _LEAST_PEAK * grown.steps
    return grown.is_steady and size >= max(_LEAST_GROWTH, _LEAST_GROWTH_SHARE * peak)


def _owner(profile: Profile, prefix: str, peak: int) -> list[Finding]:
    metric = f"{prefix}peak_bytes"
    held = Query(profile).where(**{f"{metric}__gt": 0})
    holders = source_locations.by_line(held, metric, _LEAST_SHARE * peak)
    if not holders or holders[0].value == peak:
        return []  # one line, and nothing else, says nothing
    share = holders[0].value / peak
    if _is_mostly(profile, prefix, "parameter", holders[0]):
        return []  # fewer of them are another program
    if peak < _LEAST_ACTIVATIONS and _is_mostly(profile, prefix, "activation", holders[0]):
        return []  # a small model in training keeps them for its backward
    if _is_kept(profile, prefix, holders[0]):
        return []  # a pool of a server, weights, a table of data: what the program works on
    where = source_locations.location_text(profile, holders[0].frame)
    return [
        Finding(
            id="memory",
            severity=Severity.WARNING if prefix else Severity.INFO,
            title=f"{share:.0%} of the {_memory(prefix)} in use at the peak was allocated at {where}",
            nodes=holders[0].nodes[:8],
            evidence={metric: holders[0].value, "peak_share": share},
            gain=Gain(metric, holders[0].value, share, "nothing of this line is held at the peak"),
            advice=(
                "free it before the peak (del, smaller scope), recompute it "
                "(torch.utils.checkpoint), or keep it in a narrower type"
            ),
            misleads="the program needs it all at once: then only a smaller batch helps",
        )
    ]


def _is_mostly(profile: Profile, prefix: str, role: str, location: Location) -> bool:
    """Say whether most of what a line holds has a role."""
    metric = f"{prefix}peak_{role}_bytes"
    if metric not in profile.metrics:
        return False
    held = int(profile.inclusive(metric)[list(location.nodes)].sum())
    return held >= _LEAST_SHARE * location.value


def _is_kept(profile: Profile, prefix: str, location: Location) -> bool:
    """Say whether a line allocated a few times, and all of it was held at the peak.

    What steps allocate anew comes to more than was held at one time; what a program gathers, to more
    pieces. Whether the rest is needed, and how long, a profile does not say.
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
            misleads="a caching allocator serves them from freed memory at little cost",
        )
    ]


def _not_donated(profile: Profile, program: ProgramMemory) -> list[Finding]:
    """State that goes in and comes out, while both the old and the new are kept."""
    saved = min(program.argument_bytes, program.output_bytes) - program.alias_bytes
    share = saved / program.run_bytes
    if share < _LEAST_DONATED or program.fed_back_share < _LEAST_FED_BACK:
        return []
    return [
        Finding(
            id="memory",
            severity=Severity.WARNING,
            title=f"{program.program} is given what it returned, and keeps the old beside the new",
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
                "all results take the place of arguments",
            ),
            advice="donate the arguments that are replaced: jax.jit(..., donate_argnums=...)",
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
            title=f"{share:.0%} of what {program.program} uses while it runs is temporary",
            nodes=_calls_of(profile, program),
            evidence={"temp_bytes": program.temp_bytes, "run_bytes": program.run_bytes},
            gain=Gain(
                "memory_in_use_bytes", program.temp_bytes, share, "no intermediate value is kept"
            ),
            advice=(
                "keep less for the backward (jax.checkpoint around the layers), loop over a part of "
                "the batch at a time (jax.lax.map, scan), or compute in a narrower type"
            ),
            misleads="everything fits: memory that is there costs nothing",
        )
    ]


def _calls_of(profile: Profile, program: ProgramMemory) -> tuple[int, ...]:
    """Return the nodes of the jitted function that a program was compiled for."""
    name = jax_memory.plain_name(program.program.partition("(")[0].partition("#")[0])
    return tuple(
        node
        for node in Query(profile).kind("operator").nodes().tolist()
        if jax_memory.plain_name(profile.frame(node).name) == name
    )[:8]


def _allocations(profile: Profile, metric: str, location: Location) -> int:
    """Return how many allocations lie at and below the nodes of a place."""
    inclusive = profile.tree.inclusive(profile.counts(metric))
    return int(inclusive[list(location.nodes)].sum())


def _memory(prefix: str) -> str:
    return "device memory" if prefix else "memory"


ANALYZER = Analyzer(
    "memory", "who holds memory at the peak, who allocates all the time, what only grows?", _find
)
