"""Compiled JAX programs that call Python, and wait for it, in each pass of a loop or each launch.

A call was timed only if its program ran completely while it was sampled. Of a program that was not timed,
the time of the whole call is known, and whether the call of Python is in a loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import DEVICE_TIME_NS, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import inclusive_or_zeros
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.summaries.jax import memory as jax_memory
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
        nodes = _launches(profile, each)
        is_timed = each.device_ns > 0
        called = inclusive_or_zeros(profile, HOST_TIME_NS.name)[nodes]
        value = each.device_ns if is_timed else int(called.sum()) * each.is_in_loop
        least = _LEAST_SHARE if is_timed else _LEAST_SHARE_UNTIMED
        if value >= least * elapsed:
            found.append(_finding(profile, each, nodes, value))
    return found


def _launches(profile: Profile, callback: Callback) -> list[int]:
    """Return the calls of a program, the costliest first."""
    name = jax_memory.plain_name(callback.module)
    nodes = Query(profile).kind(FrameKind.OPERATOR).nodes()
    frames = profile.tree.frame[nodes]
    texts, text = np.unique(profile.frames.name[frames], return_inverse=True)
    same = [jax_memory.plain_name(profile.frames.strings[each]) == name for each in map(int, texts)]
    found = nodes[np.array(same, np.bool_)[text]] if len(texts) else nodes
    cost = inclusive_or_zeros(profile, HOST_TIME_NS.name)[found]
    cost = cost + inclusive_or_zeros(profile, DEVICE_TIME_NS.name)[found]
    return [int(each) for each in found[np.argsort(-cost, kind="stable")]]


def _finding(profile: Profile, callback: Callback, nodes: list[int], value: int) -> Finding:
    at = callback.source
    frame = Frame(FrameKind.PYTHON, at.function, at.file, at.line) if at.file else None
    share = min(value / profile.run.wall_ns, 1.0)
    often = "each pass of a loop" if callback.is_in_loop else "each launch"
    what = "these calls take" if callback.device_ns else "the program takes"
    return Finding(
        id="synchronisation",
        severity=Severity.of_share(share),
        title=(
            f"{callback.module} calls Python ({callback.primitive}) in {often} at "
            f"{source_locations.location_text(profile, frame)}, and {what} {share:.0%} of the elapsed time"
        ),
        nodes=tuple(nodes[:8]),
        evidence={"callback_ns": callback.device_ns, "time_share": share},
        gain=Gain("elapsed time", value, share, "the program never calls Python"),
        advice=(
            "return the values from the program (scan stacks them) and look at them after the call, or call "
            "Python in every n-th pass only (jax.lax.cond); each call stops the program until the host has "
            "answered"
        ),
        misleads=(
            "the function has no counterpart in JAX, and its result decides what the program computes next"
            if callback.device_ns
            else "each pass computes for so long that the call does not matter: this program was not timed"
        ),
    )
