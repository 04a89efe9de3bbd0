"""Device starvation: time in which the GPU is idle again and again, by the host's call path at that time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.repeated_idle import IDLE, repeated_idle
from deepcontext.profiler.model.metric_values import total
from deepcontext.profiler.model.tree import NO_NODE

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

    Ints = source_locations.Ints

_LEAST_SHARE: Final = 0.20
_LEAST_LINE_SHARE: Final = 0.05


def _find(profile: Profile) -> list[Finding]:
    busy = total(profile, source_locations.GPU_TIME)
    if not busy or not total(profile, IDLE):
        return []
    repeated = repeated_idle(profile)
    idle = int(repeated.sum())
    # Kernels of several streams overlap, so the device was busy for `busy` at most.
    span = idle + busy
    if span < source_locations.LEAST_TOTAL_NS or idle / span < _LEAST_SHARE:
        return []
    lines = _lines(profile, repeated, _LEAST_LINE_SHARE * span)
    return [_finding(profile, lines, idle, span)] if lines else []


def _lines(profile: Profile, idle: Ints, least: float) -> list[source_locations.Location]:
    """Return the lines of the program with at least so much idle time, ns, the longest first.

    A line has the gaps below it that belong to no deeper line.
    """
    nodes = np.flatnonzero(idle)
    owner = source_locations.climb(profile, nodes, profile.is_user_code())
    nodes, owner = nodes[owner != NO_NODE], owner[owner != NO_NODE]
    number = source_locations.line_numbers(profile)[profile.tree.frame[owner]]
    found = []
    for line in np.flatnonzero(np.bincount(number, weights=idle[nodes]) >= least).tolist():
        places = nodes[number == line]
        places = places[np.argsort(-idle[places], kind="stable")]
        frame = profile.frame(int(owner[number == line][0]))
        found.append(
            source_locations.Location(frame, tuple(places.tolist()), int(idle[places].sum()), 0)
        )
    return sorted(found, key=lambda each: (-each.value, each.nodes))


def _finding(
    profile: Profile, lines: list[source_locations.Location], idle: int, span: int
) -> Finding:
    place = lines[0]
    value = sum(each.value for each in lines)
    share = value / span
    loads_data = any("DataLoader" in profile.frame(node).name for node in place.nodes)
    more = f" and {len(lines) - 1} more lines" if len(lines) > 1 else ""
    nodes = (
        place.nodes[:8] if not more else tuple(node for each in lines for node in each.nodes[:2])
    )
    return Finding(
        id="device_starvation",
        severity=Severity.of_share(share),
        title=(
            f"the GPU is idle {share:.0%} of the time while the host is at "
            f"{source_locations.location_text(profile, place.frame)}{more}"
        ),
        nodes=nodes[:8],
        evidence={
            "gpu_idle_ns": value,
            "idle_share": share,
            "all_idle_share": idle / span,
            "place_share": place.value / span,
        },
        gain=Gain(
            "elapsed GPU time", value, share, "the GPU never waits for the host at these places"
        ),
        advice=(
            "load the next batch while the GPU computes: workers, pin_memory=True, "
            "non_blocking=True"
            if loads_data
            else "give the GPU more work at once: larger batches, torch.compile with "
            "mode='reduce-overhead' or CUDA graphs, no reads of values (see synchronisation); move "
            "this line's work out of the step"
        ),
        misleads="another process uses the same GPU, or the same processor cores",
    )


ANALYZER = Analyzer("device_starvation", "does the GPU wait for the host?", _find)
