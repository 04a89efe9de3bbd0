"""Python's garbage collector in the step: how much of the time it takes, and at which line.

Collections are measured one by one, those of less than 20 us left out. Does not judge other work of the
host (`host_work.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.repeated_lines import before_steps
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import GC_TIME_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros, total
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.summaries.setup_time import importing

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_GC: Final = GC_TIME_NS.name
_LEAST_SHARE: Final = 0.10
_LEAST_NS: Final = 50_000_000
_FEWEST: Final = 5


def collections(profile: Profile, whole: int) -> list[Finding]:
    """Report the collector where it takes much of `whole`, the time without imports, ns."""
    if _GC not in profile.metrics:
        return []
    # A compiler makes many objects once.
    left_out = importing(profile) | profile.tree.at_or_below(profile.is_kind(FrameKind.MARKER))
    # The setup does not grow with the training.
    left_out |= before_steps(profile, profile.is_user_code())
    # What a loader makes is told with its lines.
    pauses = source_locations.apart(Query(profile, (profile.exclusive(_GC) > 0) & ~left_out))
    spent = pauses.total(_GC)
    count = int(counts_or_zeros(profile, _GC)[pauses.nodes()].sum())
    share = min(spent / max(whole, 1), 1.0)
    if spent < _LEAST_NS or share < _LEAST_SHARE or count < _FEWEST:
        return []
    line = source_locations.by_line(pauses, _GC)[0]
    where = source_locations.location_text(profile, line.frame)
    return [
        Finding(
            id="host_work",
            severity=Severity.of_share(share),
            title=(
                f"Python's garbage collector takes {share:.0%} of the time in {count} collections, "
                f"{line.value / total(profile, _GC):.0%} of it at {where}"
            ),
            nodes=line.nodes[:8],
            evidence={
                "gc_ns": spent,
                "gc_share": share,
                "collections_count": count,
                "mean_gc_ns": spent // count,
            },
            gain=Gain("elapsed time", spent, share, "nothing is collected"),
            advice=(
                "call gc.collect() once in many steps or not at all; after the setup, gc.freeze() takes the "
                "objects made so far out of further collections, and gc.set_threshold makes them rarer"
            ),
            misleads=(
                "the program makes reference cycles that hold much memory, and only a collection frees them"
            ),
        )
    ]
