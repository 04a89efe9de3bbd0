"""Synchronisation: where the host waits for the device, or would with a GPU, or a program waits for Python.

`value_reads.py` decides which values a program without a GPU reads, and where they would be.
Invariant: of waits of the host, a program that ran only on CPUs has at most one finding, of severity "info".
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.jax_callbacks import jax_callbacks
from deepcontext.analyzers.shared.repeated_idle import IDLE, repeated_idle
from deepcontext.analyzers.shared.value_reads import value_reads
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros, total
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.summaries.steps import step_count

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_WAIT: Final = "sync_wait_ns"
_JAX_WAITS: Final = frozenset({"jax: wait for the device", "jax: copy to host"})
# Most programs read the loss once a step, which costs a GPU program little.
_MOST_READS_A_STEP: Final = 2.0
# Share of all reads of a step; changing a line with fewer reads helps little.
_LEAST_PART: Final = 0.1
_LEAST_STEPS: Final = 5
_LEAST_WAIT_SHARE: Final = 0.05
_NO_WAIT: Final = "this line never waits, and the device has work all the time"
_ADVICE: Final = (
    "keep the value on the device: add it up in a tensor and read it only once in many steps, use "
    "torch.where or masks instead of 'if' and nonzero, print from a copy made with "
    "non_blocking=True"
)
_JAX_ADVICE: Final = (
    "keep the values on the device: add them up in an array and read it only once in many steps, read "
    "several values with one jax.device_get, use jnp.where or jax.lax.cond instead of 'if', start "
    "copies early with copy_to_host_async()"
)


def _find(profile: Profile) -> list[Finding]:
    if total(profile, _WAIT):
        return _waits(profile, Query(profile).where(sync_wait_ns__gt=0), _WAIT)
    if source_locations.has_jax(profile):
        return [*jax_callbacks(profile), *_jax_waits(profile)]
    # With a GPU, waits are measured, and the profile has none.
    return [] if source_locations.vendors(profile) else _reads(profile)


def _jax_waits(profile: Profile) -> list[Finding]:
    """Report the lines of a JAX program that wait, if there are more waits than launches."""
    mask = np.zeros(len(profile.tree), np.bool_)
    for kind in (FrameKind.OPERATOR, FrameKind.SCOPE, FrameKind.MARKER, FrameKind.COPY):
        mask |= source_locations.nodes_named(profile, kind, _JAX_WAITS).mask()
    waits = Query(profile, mask)
    launches = total(profile, source_locations.JAX_LAUNCHES)
    count = int(counts_or_zeros(profile, CALL_DURATION_NS.name)[waits.nodes()].sum())
    if launches < _LEAST_STEPS or count <= _MOST_READS_A_STEP * launches:
        return []
    found = _waits(profile, waits, HOST_TIME_NS.name)
    if source_locations.has_device(profile):
        return found
    # Without a device, the awaited work computes on these cores.
    return [dataclasses.replace(each, severity=Severity.INFO) for each in found[:1]]


def _waits(profile: Profile, query: Query, metric: str) -> list[Finding]:
    """Report lines by the time that the host waited, as a share of the run's elapsed time."""
    elapsed = profile.run.wall_ns
    # Without a wait, a device that works all the time has no more work to take.
    most = int(repeated_idle(profile).sum()) if IDLE in profile.metrics else elapsed
    found = []
    for location in source_locations.by_line(query, metric):
        saved = min(location.value, most)
        share = saved / elapsed if elapsed else 0.0
        if share < _LEAST_WAIT_SHARE:
            continue
        calls = int(profile.counts(metric)[list(location.nodes)].sum())
        found.append(
            Finding(
                id="synchronisation",
                severity=Severity.of_share(share),
                title=(
                    "the host waits for the device at "
                    f"{source_locations.location_text(profile, location.frame)}, "
                    f"{location.value / elapsed:.0%} of the elapsed time"
                ),
                nodes=location.nodes[:8],
                evidence={
                    "wait_ns": location.value,
                    "wait_share": location.value / elapsed,
                    "waits_count": calls,
                },
                gain=Gain("elapsed time", saved, min(share, 1.0), _NO_WAIT),
                advice=_JAX_ADVICE if metric == HOST_TIME_NS.name else _ADVICE,
                misleads=(
                    "the device is busy all the time, so the wait only moves elsewhere; a single wait "
                    "at the end of a measurement is intended"
                ),
            )
        )
    return found


def _reads(profile: Profile) -> list[Finding]:
    """Report, without a GPU, that lines read values from tensors several times a step."""
    steps = step_count(profile)
    if steps < _LEAST_STEPS:
        return []
    reads = value_reads(profile, steps)
    a_step = float(counts_or_zeros(profile, CALL_DURATION_NS.name)[reads.nodes()].sum()) / steps
    if a_step <= _MOST_READS_A_STEP:
        return []
    least = max(1.0, _LEAST_PART * a_step) * steps
    lines = [
        each for each in source_locations.by_line(reads, HOST_TIME_NS.name) if each.count >= least
    ]
    return [_read_finding(profile, lines, steps)] if lines else []


def _read_finding(profile: Profile, lines: list[source_locations.Location], steps: int) -> Finding:
    lines = sorted(lines, key=lambda line: (-line.count, line.nodes))
    a_step = sum(line.count for line in lines) / steps
    others = len(lines) - 1
    more = f" and {others} more {'line' if others == 1 else 'lines'} read" if others else " reads"
    names = {
        source_locations.base_name(profile.frame(node).name)
        for line in lines
        for node in line.nodes
    }
    value = sum(line.value for line in lines)
    return Finding(
        id="synchronisation",
        severity=Severity.INFO,
        title=(
            f"{source_locations.location_text(profile, lines[0].frame)}{more} values from tensors "
            f"{'once' if round(a_step, 1) == 1.0 else f'{a_step:.3g} times'} a step: if the tensors "
            "are on a GPU, each read waits for the GPU"
        ),
        nodes=tuple([line.nodes[0] for line in lines] + list(lines[0].nodes[1:]))[:8],
        evidence={
            "host_time_ns": value,
            "reads_per_step": round(a_step, 2),
            "lines": ", ".join(
                source_locations.location_text(profile, line.frame) for line in lines[:8]
            ),
            "operators": ", ".join(sorted(names)),
        },
        gain=source_locations.bound(
            profile,
            HOST_TIME_NS.name,
            value,
            "the reads cost nothing; in this run on a CPU, no read waits",
        ),
        advice=_ADVICE,
        misleads=(
            "the program is meant for CPUs, where reading a value is cheap, or these tensors stay on "
            "the CPU when the model is on a GPU"
        ),
    )


ANALYZER = Analyzer("synchronisation", "where does the host wait for the device?", _find)
