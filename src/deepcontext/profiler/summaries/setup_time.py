"""How much of a run was setup: importing libraries, and compiling code that runs later.

Setup dominates a short run but not a long run; the remaining time is comparable between the runs.
Covers only main threads, and only sampled profiles. Invariant: no time is counted as both importing
and compiling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import CALL_DURATION_NS
from deepcontext.profiler.model import elapsed
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries import time_between_operators

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

    Mask = npt.NDArray[np.bool_]
    Ints = npt.NDArray[np.int64]

# Frames that collectors put above the work of compilers.
_COMPILING: Final = frozenset({
    "torch.compile: compiling",
    "jax: tracing",
    "jax: lowering",
    "jax: compiling",
})
# What the profiler adds to the start of the program and to the import of a framework.
_STARTING: Final = frozenset({"deepcontext: start"})


@dataclass(frozen=True, slots=True)
class SetupTime:
    """Elapsed time of the main thread, in ns; summed over the ranks of a merged profile.

    Attributes:
        elapsed_ns: all recorded time.
        importing_ns: part of `elapsed_ns` spent on importing libraries.
        compiling_ns: part of `elapsed_ns` spent on compiling by torch.compile or JAX. Compilation
            inside a region that torch.compile has already compiled counts as time of the region.
    """

    elapsed_ns: int
    importing_ns: int
    compiling_ns: int

    @property
    def working_ns(self) -> int:
        """Time not spent on setup."""
        return self.elapsed_ns - self.importing_ns - self.compiling_ns


def setup_time(profile: Profile) -> SetupTime | None:
    """Return the setup time of the main thread; None if the time between operators is unknown."""
    if not time_between_operators.is_sampled(profile):
        return None
    on_main = time_between_operators.on_main_threads(profile)
    value = np.where(on_main, profile.exclusive(elapsed.ELAPSED_TIME_NS.name), 0)
    is_compiling = compiling(profile)
    is_importing = importing(profile) & ~is_compiling
    inside = np.minimum(compiling_in_operators(profile), np.where(is_compiling, 0, value))
    return SetupTime(
        elapsed_ns=int(value.sum()),
        importing_ns=int(value[is_importing].sum()),
        compiling_ns=int(value[is_compiling].sum() + inside.sum()),
    )


def compiling(profile: Profile) -> Mask:
    """Return the nodes at or below the work of a compiler, shape (nodes,), bool."""
    return np.asarray(profile.tree.at_or_below(_named(profile, _COMPILING)))


def compiling_in_operators(profile: Profile) -> Ints:
    """Return how long a compiler ran inside each operator, as self time of the operator, ns, shape (nodes,).

    torch.compile compiles a backward in its first call, which autograd makes: what happens inside an
    operator is part of its time. The longest call of an operator that compiles is the one that did, and
    takes so much more than the others.
    """
    tree, found = profile.tree, np.zeros(len(profile.tree), np.int64)
    rows = profile.metrics.get(CALL_DURATION_NS.name)
    marked = np.flatnonzero(_named(profile, _COMPILING))
    if rows is None or not len(marked):
        return found
    if elapsed.ELAPSED_TIME_NS.name in profile.metrics:
        # All windows of a run have the same nodes.
        marked = marked[profile.inclusive(elapsed.ELAPSED_TIME_NS.name)[marked] > 0]
    operators = tree.nearest(profile.is_kind(FrameKind.OPERATOR))[marked]
    compiles = np.isin(rows.node, operators[operators != NO_NODE])
    once = compiles & (rows.count == 1)
    found[rows.node[once]] = rows.total[once]
    if rows.maximum is not None:
        often = compiles & (rows.count > 1)
        others = (rows.total - rows.maximum) // np.maximum(rows.count.astype(np.int64) - 1, 1)
        found[rows.node[often]] = (rows.maximum - others)[often]
    return found


def importing(profile: Profile) -> Mask:
    """Return for each node whether a library's module body runs there, without deeper user lines.

    The outermost module body is the program, even if it belongs to a library (`python -m pytest`).
    Code from a string is no module. The start of the profiler itself counts as an import.
    """
    tree, frames = profile.tree, profile.frames
    is_user = profile.is_user_code()[tree.frame]
    body = frames.is_module_body()[tree.frame]
    is_module = body & ~frames.is_from_string()[tree.frame]
    imported = (is_module & ~is_user & tree.below(body)) | _named(profile, _STARTING)
    nearest = tree.nearest(imported | is_user)
    return np.asarray((nearest != NO_NODE) & imported[nearest])


def _named(profile: Profile, names: frozenset[str]) -> Mask:
    frames = profile.frames
    chosen = [number for number, text in enumerate(frames.strings) if text in names]
    return np.asarray(np.isin(frames.name, chosen)[profile.tree.frame])
