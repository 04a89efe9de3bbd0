"""What the report and the page write about operations, bytes and peaks: the sentences above their tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.ui.format import (
    format_bandwidth,
    format_count,
    format_flops,
    format_ns,
    format_share,
)

if TYPE_CHECKING:
    from deepcontext.profiler.summaries.arithmetic import Arithmetic
    from deepcontext.profiler.summaries.efficiency import Efficiency
    from deepcontext.profiler.summaries.roof import Roof

_MOST_NAMES: Final = 5


def arithmetic_text(found: Arithmetic) -> str:
    """Return ``"613 GFLOP in 13.0 s of operators; 40.9 GFLOP a step; 16.4 % of the peak ..."``."""
    where = "kernels" if found.is_on_gpu else "operators"
    parts = [f"{format_flops(found.total.flops)} in {format_ns(found.total.time_ns)} of {where}"]
    if found.steps:
        parts.append(f"{format_flops(found.total.flops / found.steps)} a step")
    if found.mfu is not None:
        parts.append(f"{format_share(found.mfu)} of the peak over a step (MFU)")
    if found.fastest_flops_per_second:
        parts.append(f"the fastest shapes attain {format_flops(found.fastest_flops_per_second)}/s")
    if found.unknown:
        calls = sum(found.unknown.values())
        names = ", ".join(sorted(found.unknown))
        parts.append(f"without {format_count(calls)} calls whose sizes are not known ({names})")
    return "; ".join(parts)


def efficiency_text(found: Efficiency) -> str:
    """Return the peaks, and how much of the time is of operators whose work is not known."""
    parts = [roof_text(found.roof)]
    if found.unknown:
        names = ", ".join(each.name for each in found.unknown[:_MOST_NAMES])
        more = ", ..." if len(found.unknown) > _MOST_NAMES else ""
        parts.append(
            f"{format_share(found.unknown_share)} of the time is of operators whose work is not known "
            f"({names}{more})"
        )
    return "; ".join(parts)


def roof_text(roof: Roof | None) -> str:
    """Return the peaks and where they are from, or how to get them."""
    if roof is None:
        return "peaks not known: 'deepcontext doctor --measure' on the machine of the run, or --peaks FILE"
    peaks = roof.peaks
    rates = ", ".join(
        f"{kind} {format_flops(rate)}/s" for kind, rate in sorted(peaks.flops_per_second.items())
    )
    threads = f" on {peaks.threads} thread{'s' * (peaks.threads > 1)}" if peaks.threads else ""
    return (
        f"peaks of {peaks.device}{threads}, {roof.origin}: {rates}, "
        f"{format_bandwidth(peaks.bytes_per_second)}"
    )
