"""Idle time of GPUs that comes again and again, told from that of a program's beginning.

A program starts with long gaps that never come again: it imports, compiles, and loads libraries at the first
call. Gaps are therefore judged by place: the longest of each place is left out, and a place whose other gaps
are mostly a few long ones, too. A place is a call path; in a trace, which may have a single step, all paths
that end alike are one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import FrameKind

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

    Ints = source_locations.Ints

IDLE: Final = "gpu_idle_ns"
# As many equal gaps, or as unequal as these; measured on an H100: 1 to 3 at lines that prepare something,
# 5 at least, and mostly one for each step, at lines that starve the device.
_LEAST_GAPS: Final = 4.0
# A model is moved to the device once, and inductor times kernels while it compiles.
_SET_UP: Final = frozenset({"Module._apply", "Benchmarker.benchmark", "Benchmarker.benchmark_gpu"})


def repeated_idle(profile: Profile) -> Ints:
    """Return the idle time of each node that came again and again, ns, shape (nodes,)."""
    return profile.once(repeated_idle, lambda: _repeated_idle(profile))


def _repeated_idle(profile: Profile) -> Ints:
    found = np.zeros(len(profile.tree), np.int64)
    rows = profile.metrics.get(IDLE)
    if rows is None:
        return found
    if rows.maximum is None or rows.m2 is None:
        found[rows.node] = rows.total
        return found
    spent = rows.total.astype(np.float64)
    squares = rows.m2 + spent**2 / np.maximum(rows.count, 1)
    is_trace = profile.trust.read_from is not None
    _, place = np.unique(
        profile.tree.frame[rows.node] if is_trace else rows.node, return_inverse=True
    )
    whole = np.bincount(place, spent)
    of_squares = np.bincount(place, squares)
    longest = np.zeros(len(whole))
    np.maximum.at(longest, place, rows.maximum)
    others = whole - longest
    # Of n equal gaps, the square of the sum is n times the sum of squares.
    gaps = others**2 / np.maximum(of_squares - longest**2, 1.0)
    part = np.where(gaps >= _LEAST_GAPS, others / np.maximum(whole, 1.0), 0)
    found[rows.node] = np.rint(spent * part[place])
    set_up = source_locations.nodes_named(profile, FrameKind.PYTHON, _SET_UP).mask()
    set_up = set_up | source_locations.compiling(profile).mask()
    if set_up.any():
        found[profile.tree.at_or_below(set_up)] = 0
    return found
