"""How much of a run was setting up: importing libraries, and compiling what runs later.

A short run is mostly that, a long one hardly; what is left is comparable between them. Looks at main
threads only, of sampled profiles only. Invariant: nothing is counted both as importing and compiling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.model import elapsed
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries import time_between_operators

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

    Mask = npt.NDArray[np.bool_]

# Frames that collectors put above what compilers do.
_COMPILING: Final = frozenset({
    "torch.compile: compiling",
    "jax: tracing",
    "jax: lowering",
    "jax: compiling",
})
_IMPORTED: Final = "<module>"


@dataclass(frozen=True, slots=True)
class SetupTime:
    """Elapsed time of the main thread, in ns; summed over the ranks of a merged profile.

    Attributes:
        elapsed_ns: all that was followed.
        importing_ns: of that, importing libraries.
        compiling_ns: of that, compiling by torch.compile or JAX. What torch.compile compiles inside
            a region it has compiled is the region's time.
    """

    elapsed_ns: int
    importing_ns: int
    compiling_ns: int

    @property
    def working_ns(self) -> int:
        """Time that was not spent on setting up."""
        return self.elapsed_ns - self.importing_ns - self.compiling_ns


def setup_time(profile: Profile) -> SetupTime | None:
    """Return what the main thread's time went to; None where the time between operators is unknown."""
    if not time_between_operators.is_sampled(profile):
        return None
    on_main = time_between_operators.on_main_threads(profile)
    value = np.where(on_main, profile.exclusive(elapsed.ELAPSED_TIME_NS.name), 0)
    is_compiling = profile.tree.at_or_below(_named(profile, _COMPILING))
    is_importing = importing(profile) & ~is_compiling
    return SetupTime(
        elapsed_ns=int(value.sum()),
        importing_ns=int(value[is_importing].sum()),
        compiling_ns=int(value[is_compiling].sum()),
    )


def importing(profile: Profile) -> Mask:
    """Say of each node whether a library's module body runs there, with no line of the user's in it.

    The outermost module body is the program, even where that is a library's (`python -m pytest`).
    """
    tree, frames = profile.tree, profile.frames
    is_user = frames.is_user_code()[tree.frame]
    body = _named(profile, {_IMPORTED}) & profile.is_kind(FrameKind.PYTHON)
    imported = body & ~is_user & tree.below(body)
    nearest = tree.nearest(imported | is_user)
    return np.asarray((nearest != NO_NODE) & imported[nearest])


def _named(profile: Profile, names: frozenset[str] | set[str]) -> Mask:
    frames = profile.frames
    chosen = [number for number, text in enumerate(frames.strings) if text in names]
    return np.asarray(np.isin(frames.name, chosen)[profile.tree.frame])
