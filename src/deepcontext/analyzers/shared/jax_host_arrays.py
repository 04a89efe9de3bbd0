"""NumPy arrays that a program gives to jitted functions again and again, so that each call copies them.

Only arrays of 1 MiB or more are recognised, by identity and a sample of their contents. How long a copy took
is not recorded: JAX copies beside the program, which waits for the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.model.metric_values import counts_or_zeros, exclusive_or_zeros
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.summaries.setup_time import setup_time

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_REPEATED: Final = "repeated_transfer_bytes"
_LEAST_CALLS: Final = 5
_LEAST_SHARE: Final = 0.05
# Source: measured, jax 0.10.2 on a processor: 0.55 to 0.61 ns of processor time a byte, for arrays of 8 to
# 200 MB in new memory; down to a tenth of it in memory that was used before.
_NS_PER_BYTE: Final = 0.6


def repeated_host_arrays(profile: Profile) -> list[Finding]:
    """Return a finding for each line that gives the same large NumPy arrays to jitted calls."""
    if _REPEATED not in profile.metrics:
        return []
    setup = setup_time(profile)
    whole = setup.working_ns if setup else profile.run.wall_ns
    copied = exclusive_or_zeros(profile, _REPEATED)
    calls = counts_or_zeros(profile, _REPEATED)
    found = []
    query = Query(profile, copied > 0).kind(FrameKind.OPERATOR)
    for location in source_locations.by_line(query, _REPEATED):
        nodes = np.array(location.nodes)
        count, size = int(calls[nodes].sum()), int(copied[nodes].sum())
        share = min(_NS_PER_BYTE * size / whole, 1.0) if whole > 0 else 0.0
        if count >= _LEAST_CALLS and share >= _LEAST_SHARE:
            found.append(_finding(profile, location, count, size, share))
    return found


def _finding(
    profile: Profile, location: source_locations.Location, count: int, size: int, share: float
) -> Finding:
    name = profile.frame(location.nodes[0]).name
    return Finding(
        id="copies",
        severity=Severity.of_share(share),
        title=(
            f"{name} is given the same NumPy arrays in {count:,} calls at "
            f"{source_locations.location_text(profile, location.frame)}: each call copies "
            f"{size / count / 1e6:,.0f} MB again"
        ),
        nodes=location.nodes[:8],
        evidence={"repeated_transfer_bytes": size, "calls_count": count, "copy_share": share},
        gain=Gain("elapsed time", int(_NS_PER_BYTE * size), share, "copying a byte takes 0.6 ns"),
        advice=(
            "put the arrays on the device once, before the loop (jax.device_put, jnp.asarray), and give the "
            "function what that returns"
        ),
        misleads=(
            "the program changes few values of the array between calls; the device has no room for the array"
        ),
    )
