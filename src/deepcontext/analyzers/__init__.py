"""Findings about a profile: what costs time or memory, at which line, why, and what to change.

    findings = run_analyzers(Profile.load("train.dcprof"), min_gain=0.01)

`questions/` look at a profile and return causes, `catalogue/` has what is known about frameworks and says
what to change, and `causes.py` makes one finding of each cause. Nothing here prints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.analyzers.answers import ALL
from deepcontext.analyzers.base import Analyzer, installed, load_plugin, run, select
from deepcontext.analyzers.finding import Finding, Gain, Severity, encode_section
from deepcontext.analyzers.shared import worker_waits
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
_LOADING: Final = "data_loading"


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
    if not any(each.id == _LOADING for each in findings):
        return tuple(findings)
    all_processes = processes()
    rows = loader_times(processes_of(all_processes)) if len(all_processes) > 1 else []
    row = next((each for each in rows if each.pid == profile.run.pid), None)
    return tuple(
        worker_waits.with_workers(profile, each, row) if row and each.id == _LOADING else each
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
