"""Questions to a profile, one a file; each answers with findings. Listed once, here.

    findings = run_analyzers(Profile.load("train.dcprof"), min_gain=0.01)

Analyzers return data; they never print. What they know of a profile they ask of `Profile.query()`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.analyzers import (
    copies,
    data_loading,
    device_starvation,
    forward_backward,
    hotspot,
    jax_fusion,
    kernel_fusion,
    launch_configuration,
    memory,
    precision,
    rank_imbalance,
    recompilation,
    stall_reasons,
    synchronisation,
    variance,
)
from deepcontext.analyzers.base import Analyzer, installed, load_plugin, run, select
from deepcontext.analyzers.finding import Finding, Gain, Severity, encode_section
from deepcontext.analyzers.stored import Findings, stored_or

if TYPE_CHECKING:
    from collections.abc import Sequence

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
]

ALL: tuple[Analyzer, ...] = (
    hotspot.ANALYZER,
    kernel_fusion.ANALYZER,
    forward_backward.ANALYZER,
    data_loading.ANALYZER,
    synchronisation.ANALYZER,
    copies.ANALYZER,
    recompilation.ANALYZER,
    precision.ANALYZER,
    variance.ANALYZER,
    device_starvation.ANALYZER,
    stall_reasons.ANALYZER,
    launch_configuration.ANALYZER,
    memory.ANALYZER,
    jax_fusion.ANALYZER,
    rank_imbalance.ANALYZER,
)


def run_analyzers(
    profile: Profile,
    *,
    only: Sequence[str] = (),
    min_gain: float = 0.0,
    plugins: Sequence[Analyzer] = (),
) -> tuple[Finding, ...]:
    """Ask a profile all questions: the built-in ones, those of installed packages, and `plugins`.

    Args:
        profile: what to look at.
        only: ids of the analyzers to run; empty runs all.
        min_gain: share of the profile (0 to 1) that a finding must promise at most.
        plugins: further analyzers, for example those of `load_plugin`.

    Returns:
        What was found, largest possible gain first.

    Raises:
        UserError: an unknown id, or an analyzer that fails.
    """
    analyzers = select((*ALL, *installed(), *plugins), only)
    return run(profile, analyzers, min_gain=min_gain)


def known_findings(profile: Profile) -> Findings:
    """Return the findings stored in a profile, else what all analyzers find now.

    Raises:
        QueryError: the stored findings cannot be read.
        UserError: an analyzer failed; the message names it.
    """
    return stored_or(profile, run_analyzers)
