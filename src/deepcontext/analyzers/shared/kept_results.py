"""Results with a graph that a program keeps from each of its steps: lists of losses, metrics, outputs.

All that one line ever allocated is held at the peak, in many pieces, and no backward uses the graph that
holds it. Which object holds the results is not known (`held_tensors.py`, which needs ``--holders``). Does not
judge modules, whose graphs are judged as a whole (`unused_graphs.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.unused_graphs import links_backwards
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import BUILT_GRAPH
from deepcontext.profiler.model.metric_values import counts_or_zeros
from deepcontext.profiler.model.query import Query

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

# Of all memory at the peak, and in bytes.
_LEAST_SHARE: Final = 0.25
_LEAST_BYTES: Final = 16 << 20
# Of what was ever allocated: the last step's result may be the only one that was freed.
_LEAST_KEPT: Final = 0.9
_FEWEST_PIECES: Final = 32


def kept_results(profile: Profile, prefix: str, peak: int) -> list[Finding]:
    """Return at most one finding, about the line that keeps most.

    Args:
        profile: the profile.
        prefix: "" for the memory of the host, "gpu_" for that of devices.
        peak: most bytes held at once.
    """
    held, allocated = f"{prefix}peak_bytes", f"{prefix}alloc_bytes"
    if not {BUILT_GRAPH.name, held, allocated} <= set(profile.metrics):
        return []
    tree = profile.tree
    operators = Query(profile, profile.is_kind(FrameKind.OPERATOR))
    outermost = source_locations.outermost(operators).mask()
    # Operators that a line calls itself; modules are judged elsewhere.
    outermost &= ~tree.below(profile.is_kind(FrameKind.MODULE))
    builds = tree.at_or_above(counts_or_zeros(profile, BUILT_GRAPH.name) > 0)
    is_used = tree.at_or_above(tree.phase == Phase.BACKWARD)
    results = tree.at_or_below(outermost & builds & ~is_used)
    pieces = profile.counts(allocated)
    results &= pieces >= _FEWEST_PIECES
    results &= profile.exclusive(held) >= _LEAST_KEPT * profile.exclusive(allocated)
    lines = source_locations.by_line(
        Query(profile, results), held, max(_LEAST_BYTES, _LEAST_SHARE * peak)
    )
    if not lines or not links_backwards(profile):
        return []
    line = lines[0]
    count = int(pieces[list(line.nodes)].max())
    return [_finding(profile, line, count, prefix, line.value / peak)]


def _finding(
    profile: Profile, line: source_locations.Location, count: int, prefix: str, share: float
) -> Finding:
    where = source_locations.location_text(profile, line.frame)
    return Finding(
        id="memory",
        severity=Severity.WARNING,
        title=(
            f"{count:,} results of {where} are kept with their graphs, which no backward uses: "
            f"{share:.0%} of the {'device ' if prefix else ''}memory at the peak"
        ),
        nodes=line.nodes[:8],
        evidence={f"{prefix}peak_bytes": line.value, "peak_share": share, "results_count": count},
        gain=Gain(f"{prefix}peak_bytes", line.value, share, "nothing of these graphs is kept"),
        advice=(
            "keep numbers (.item(), float()) or detached tensors (.detach()): a tensor with a graph keeps "
            "what its backward would need; a profile with --holders names the object that keeps them"
        ),
        misleads="a backward through all of them follows after the profile's end",
    )
