"""Data that a program converts as a whole and then holds, where each batch could be converted.

Types are not recorded. Integers (pixels, sound) are recognised by what follows their conversion: all values
are divided by one number. Other conversions are a question, because they may make the data narrower.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.called_operators import called_by_user
from deepcontext.analyzers.shared.operator_names import DEVICE_OR_TYPE
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.lines import nearest_user

if TYPE_CHECKING:
    from deepcontext.analyzers.shared.source_locations import Location
    from deepcontext.profiler.model.profile import Profile

_SCALES: Final = frozenset(f"aten::{name}" for name in ("div", "div_", "mul", "mul_"))
# Data with a mean to subtract is measured, and seldom made of integers.
_SHIFTS: Final = frozenset(f"aten::{name}" for name in ("sub", "sub_", "add", "add_"))
# Of float32, when the data is held as bytes.
_SAVED_BY_BYTES: Final = 0.75


def widened_data(profile: Profile, prefix: str, location: Location, share: float) -> list[Finding]:
    """Return a finding if a line that holds much memory converted it.

    Args:
        profile: the profile.
        prefix: "" for the memory of the host, "gpu_" for that of devices.
        location: the line, and what it holds at the peak, in bytes.
        share: the same as a share of the peak, 0 to 1.
    """
    called = _called_at(profile, location)
    if called.isdisjoint(DEVICE_OR_TYPE):
        return []
    # On a device, the copy to the device looks like a conversion.
    is_scaled = not prefix and not called.isdisjoint(_SCALES) and called.isdisjoint(_SHIFTS)
    saved = int(_SAVED_BY_BYTES * location.value)
    return [
        Finding(
            id="memory",
            severity=Severity.WARNING if is_scaled else Severity.INFO,
            title=(
                f"{share:.0%} of the {'device ' if prefix else ''}memory in use at the peak is data that was "
                f"converted{' and scaled' if is_scaled else ''} as a whole at "
                f"{source_locations.location_text(profile, location.frame)}"
            ),
            nodes=location.nodes[:8],
            evidence={f"{prefix}peak_bytes": location.value, "peak_share": share},
            gain=Gain(
                f"{prefix}peak_bytes", saved, _SAVED_BY_BYTES * share, "each value is a byte"
            ),
            advice=(
                "hold the values in the narrower type that they came in (uint8 pixels, int16 sound), and "
                "convert and scale each batch"
            ),
            misleads="the conversion made the values narrower; types are not recorded",
        )
    ]


def _called_at(profile: Profile, location: Location) -> set[str]:
    """Return the names of the operators that a line calls itself."""
    tree, line = profile.tree, source_locations.line_numbers(profile)
    owner = nearest_user(profile)
    of_node = np.where(owner == NO_NODE, 0, line[tree.frame[owner]])
    called = called_by_user(profile) & profile.is_kind(FrameKind.OPERATOR)
    # A conversion to the type that a tensor already has calls nothing.
    copied = source_locations.operators(profile, {"aten::_to_copy"}).mask()
    called &= tree.at_or_above(copied) | ~source_locations.operators(profile, DEVICE_OR_TYPE).mask()
    nodes = np.flatnonzero(called & (of_node == of_node[location.nodes[0]]))
    return {source_locations.base_name(profile.frame(int(node)).name) for node in nodes}
