"""Pivots: what the first level of a tree can show instead of the threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import FrameKind

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

# Dimensions besides threads and phases, by the kind of frame; frame names are no dimension.
DIMENSIONS: Final = {"rank": FrameKind.RANK}


def pivots(profile: Profile) -> tuple[str, ...]:
    """Return the pivots of this profile, the default first."""
    kinds = profile.frames.kind
    found = (name for name, kind in DIMENSIONS.items() if np.any(kinds == kind))
    return ("thread", "none", "phase", *found)
