"""Questions about a profile, one in each file, answered with findings. This file lists them once.

    findings = run_analyzers(Profile.load("train.dcprof"), min_gain=0.01)

Analyzers return data and never print. They read a profile through `Profile.query()`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.analyzers import (
    cheaper_operator,
    copies,
    data_loading,
    device_starvation,
    far_from_peak,
    forward_backward,
    host_work,
    hotspot,
    jax_fusion,
    kernel_fusion,
    launch_configuration,
    memory,
    model_calls,
    padding,
    precision,
    rank_imbalance,
    recompilation,
    settings,
    stall_reasons,
    straggler,
    synchronisation,
    variance,
)
from deepcontext.analyzers.base import Analyzer, installed, load_plugin, run, select
from deepcontext.analyzers.finding import Finding, Gain, Severity, encode_section
from deepcontext.analyzers.shared import loading_lines
from deepcontext.analyzers.stored import Findings, stored_or
from deepcontext.profiler.summaries.loader_workers import loader_times
from deepcontext.profiler.summaries.processes import processes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deepcontext.profiler.model.profile import Profile

__all__ = [
    "ALL",
    "Analyzer",
    "Finding",
    "Findings",
    "Gain",
    "Severity",
    "encode_section",
    "known_findings",
    "load_plugin",
    "run",
    "run_analyzers",
    "with_worker_lines",
]

ALL: tuple[Analyzer, ...] = (
    hotspot.ANALYZER,
    kernel_fusion.ANALYZER,
    forward_backward.ANALYZER,
    data_loading.ANALYZER,
    synchronisation.ANALYZER,
    host_work.ANALYZER,
    copies.ANALYZER,
    recompilation.ANALYZER,
    settings.ANALYZER,
    model_calls.ANALYZER,
    padding.ANALYZER,
    cheaper_operator.ANALYZER,
    precision.ANALYZER,
    far_from_peak.ANALYZER,
    variance.ANALYZER,
    device_starvation.ANALYZER,
    stall_reasons.ANALYZER,
    launch_configuration.ANALYZER,
    memory.ANALYZER,
    jax_fusion.ANALYZER,
    rank_imbalance.ANALYZER,
    straggler.ANALYZER,
)


def run_analyzers(
    profile: Profile,
    *,
    only: Sequence[str] = (),
    min_gain: float = 0.0,
    plugins: Sequence[Analyzer] = (),
) -> tuple[Finding, ...]:
    """Run the built-in analyzers, the analyzers of installed packages, and `plugins`.

    Args:
        profile: the profile.
        only: ids of the analyzers to run; empty runs all.
        min_gain: drop findings whose maximum gain is below this share of the profile (0 to 1).
        plugins: more analyzers, for example from `load_plugin`.

    Returns:
        The findings, largest possible gain first.

    Raises:
        UserError: an id is unknown, or an analyzer failed.
    """
    analyzers = select((*ALL, *installed(), *plugins), only)
    return run(profile, analyzers, min_gain=min_gain)


def with_worker_lines(
    findings: Sequence[Finding], profile: Profile, processes: Callable[[], Sequence[Profile]]
) -> tuple[Finding, ...]:
    """Add to findings about a loop that waits for its loader where the loader's workers spend time.

    Args:
        findings: findings of `profile`.
        profile: the process of the loop.
        processes: returns the profiles of all processes of the run; called if there is such a finding.
    """
    if not any(each.id == data_loading.ANALYZER.id for each in findings):
        return tuple(findings)
    all_processes = processes()
    rows = loader_times(processes_of(all_processes)) if len(all_processes) > 1 else []
    row = next((each for each in rows if each.pid == profile.run.pid), None)
    return tuple(
        loading_lines.with_workers(profile, each, row)
        if row and each.id == data_loading.ANALYZER.id
        else each
        for each in findings
    )


def known_findings(
    profile: Profile, processes: Callable[[], Sequence[Profile]] = tuple
) -> Findings:
    """Return the findings stored in a profile, or run all analyzers if none are stored.

    Args:
        profile: the profile.
        processes: returns the profiles of all processes of the run, if it had several.

    Raises:
        QueryError: the stored findings cannot be read.
        UserError: an analyzer failed; the message names the analyzer.
    """
    return stored_or(profile, lambda each: with_worker_lines(run_analyzers(each), each, processes))
