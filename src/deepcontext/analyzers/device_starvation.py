"""Device starvation: time in which the GPU is idle, by the host's call path at that time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.model.metric_values import total
from deepcontext.profiler.model.query import Query

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_IDLE: Final = "gpu_idle_ns"
_LEAST_SHARE: Final = 0.20
_LEAST_LINE_SHARE: Final = 0.05


def _find(profile: Profile) -> list[Finding]:
    idle, busy = (
        total(profile, _IDLE),
        total(profile, source_locations.GPU_TIME),
    )
    # Kernels of several streams overlap, so the device was busy for `busy` at most.
    span = idle + busy
    if not busy or span < source_locations.LEAST_TOTAL_NS or idle / span < _LEAST_SHARE:
        return []
    found = []
    for location in source_locations.by_line(Query(profile).where(gpu_idle_ns__gt=0), _IDLE):
        share = location.value / span
        if share < _LEAST_LINE_SHARE:
            break
        found.append(_finding(profile, location, share, idle / span))
    return found


def _finding(
    profile: Profile, location: source_locations.Location, share: float, all_idle: float
) -> Finding:
    loads_data = any("DataLoader" in profile.frame(node).name for node in location.nodes)
    return Finding(
        id="device_starvation",
        severity=Severity.of_share(share),
        title=(
            f"the GPU is idle {share:.0%} of the time while the host is at "
            f"{source_locations.location_text(profile, location.frame)}"
        ),
        nodes=location.nodes[:8],
        evidence={"gpu_idle_ns": location.value, "idle_share": share, "all_idle_share": all_idle},
        gain=Gain("elapsed GPU time", location.value, share, "the GPU never waits for this line"),
        advice=(
            "load the next batch while the GPU computes: workers, pin_memory=True, "
            "non_blocking=True"
            if loads_data
            else "give the GPU more work at once: larger batches, torch.compile with "
            "mode='reduce-overhead' or CUDA graphs, no reads of values (see synchronisation); move "
            "this line's work out of the step"
        ),
        misleads="another process uses the same GPU; the profile covers start-up more than steps",
    )


ANALYZER = Analyzer("device_starvation", "does the GPU wait for the host?", _find)
