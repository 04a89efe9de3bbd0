"""Compiled JAX programs that call Python, and wait for it, in each pass of a loop or each launch.

A call was timed only if its program ran completely while it was sampled. Of a program that was not timed,
the time of the whole call is known, and whether the call of Python is in a loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.jax_calls import calls_of
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import HOST_TIME_NS
from deepcontext.profiler.model.metric_values import inclusive_or_zeros
from deepcontext.profiler.summaries.jax.callbacks import Callback, callbacks

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

# Of the elapsed time.
_LEAST_SHARE: Final = 0.10
# A loop that was not timed does other work, too.
_LEAST_SHARE_UNTIMED: Final = 0.25


def jax_callbacks(profile: Profile) -> list[Finding]:
    """Return a finding for each line that a compiled program calls Python at, if that takes long."""
    elapsed = profile.run.wall_ns
    found = []
    for each in callbacks(profile) if elapsed else ():
        nodes = calls_of(profile, each.module)
        is_timed = each.host_ns > 0
        called = inclusive_or_zeros(profile, HOST_TIME_NS.name)[nodes]
        value = each.host_ns if is_timed else int(called.sum()) * each.is_in_loop
        least = _LEAST_SHARE if is_timed else _LEAST_SHARE_UNTIMED
        if value >= least * elapsed:
            found.append(_finding(profile, each, nodes, value))
    return found


def _finding(profile: Profile, callback: Callback, nodes: list[int], value: int) -> Finding:
    at = callback.source
    frame = Frame(FrameKind.PYTHON, at.function, at.file, at.line) if at.file else None
    share = min(value / profile.run.wall_ns, 1.0)
    often = "each pass of a loop" if callback.is_in_loop else "each launch"
    what = "these calls take" if callback.host_ns else "the program takes"
    return Finding(
        id="synchronisation",
        severity=Severity.of_share(share),
        title=(
            f"{callback.module} calls Python ({callback.primitive}) in {often} at "
            f"{source_locations.location_text(profile, frame)}, and {what} {share:.0%} of the elapsed time"
        ),
        nodes=tuple(nodes[:8]),
        evidence={"callback_ns": callback.host_ns, "time_share": share},
        gain=Gain("elapsed time", value, share, "the program never calls Python"),
        advice=(
            "return the values from the program (scan stacks them) and look at them after the call, or call "
            "Python in every n-th pass only (jax.lax.cond); each call stops the program until the host has "
            "answered"
        ),
        misleads=(
            "the function has no counterpart in JAX, and its result decides what the program computes next"
            if callback.host_ns
            else "each pass computes for so long that the call does not matter: this program was not timed"
        ),
    )
