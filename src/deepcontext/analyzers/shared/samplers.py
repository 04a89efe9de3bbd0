"""Samplers that work for long: no worker of a loader draws indices, whatever making them costs.

A sampler runs in the process of the loop. Does not judge loaders without workers, whose whole time is in
that process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import loading_lines, source_locations
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.summaries.setup_time import setup_time

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_LEAST_SHARE: Final = 0.08


def busy_sampler(profile: Profile) -> list[Finding]:
    """Return a finding if the sampler of a loader with workers takes much of the time of the loop."""
    asked = source_locations.nodes_named(profile, FrameKind.PYTHON, {source_locations.NEXT_INDEX})
    line = loading_lines.costliest(profile, asked.mask()) if asked.count() else None
    time = setup_time(profile)
    if line is None or time is None or time.working_ns <= 0:
        return []
    share = min(line.making_ns / time.working_ns, 1.0)
    if share < _LEAST_SHARE:
        return []
    return [
        Finding(
            id="data_loading",
            severity=Severity.of_share(share),
            title=(
                f"the loop waits {share:.0%} of the time for the sampler of its loader, which no worker "
                f"runs, {loading_lines.text(line)}"
            ),
            nodes=line.nodes,
            evidence={"sampler_ns": line.making_ns, "sampler_share": share, "line_ns": line.value},
            gain=Gain("elapsed time", line.making_ns, share, "the sampler costs nothing"),
            advice=(
                "let the sampler read what it needs (lengths, classes, weights) from a table that is made "
                "once, without loading samples; workers prepare batches and draw no indices"
            ),
            misleads="the order depends on results of the last step, and has to be computed in each epoch",
        )
    ]
