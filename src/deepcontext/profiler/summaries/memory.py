"""Summaries of memory; nothing is formatted or printed.

Reads the section "memory" and the metrics of the memory collector. For JAX's arrays only growth is
here; `summaries/jax/memory.py` has the rest. Invariant: the roles of a pool, including "unknown", add
up to the pool's peak.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.model.grouping import NO_GROUP, sums
from deepcontext.profiler.model.metric_values import total
from deepcontext.profiler.model.place import Place
from deepcontext.profiler.summaries.jax.memory import PEAK
from deepcontext.profiler.summaries.jax.programs import section
from deepcontext.profiler.summaries.lines import UserLines, by_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from deepcontext.profiler.model.frame_table import FrameTable
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.groups import GroupTable

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

SECTION: Final = "memory"
GPU_PREFIX: Final = "gpu_"
_LAYOUT: Final = 1
# A cache or a buffer grows a few times; a leak keeps growing, by more than what varies in step ends.
_FEWEST_GROWN: Final = 3
_LEAST_STEPS: Final = 0.1
_LEAST_GROWTH: Final = 1 << 20
_LEAST_OF_PEAK: Final = 0.01
# What grows in every step is no cache, and is judged by what it would hold after a training run.
_FEWEST_STEPS: Final = 5
_LEAST_IN_A_RUN: Final = 64 << 20
_STEPS_OF_A_RUN: Final = 10_000


@dataclass(frozen=True, slots=True)
class Pool:
    """The memory of the host or of one device.

    Attributes:
        name: "cpu", "cuda:0", ...
        is_device: False for the host's memory.
        allocations: number of allocations.
        alloc_bytes: bytes allocated over the run.
        live_bytes: bytes held when the profile was written.
        peak_bytes: most bytes held at any time.
        peak_after_ns: time from the session's start to the peak.
        peak_step: number of steps that had ended before the peak.
        growth_bytes: bytes held at the end of the last step minus bytes held at the end of the step
            that growth is counted from; negative if memory shrank.
        reserved_peak_bytes: most bytes that the framework's cache reserved from the driver; 0 if
            unknown.
        peak_role_bytes: the peak by purpose of the memory, including "unknown".
    """

    name: str
    is_device: bool
    allocations: int
    alloc_bytes: int
    live_bytes: int
    peak_bytes: int
    peak_after_ns: int
    peak_step: int
    growth_bytes: int
    reserved_peak_bytes: int
    peak_role_bytes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """What the profiled program allocated.

    Attributes:
        steps: number of steps; for JAX, steps at whose end arrays were inspected.
        step_kind: "mark" of the program, step of an "optimizer", or "call" of a model.
        growth_since_step: the step from whose end growth is counted; 0 if growth is not counted.
        untracked_bytes: bytes allocated while too many allocations were alive to track more.
        pools: the memories, the host's first; empty for JAX.
    """

    steps: int
    step_kind: str
    growth_since_step: int
    untracked_bytes: int
    pools: tuple[Pool, ...]

    @property
    def growth_steps(self) -> int:
        """Number of steps over which growth is counted."""
        return self.steps - self.growth_since_step if self.growth_since_step else 0


@dataclass(frozen=True, slots=True)
class GrownLine(Place):
    """A line of the user's code under which memory grows from step to step.

    Attributes:
        size_bytes: growth in bytes.
        grown_steps: number of steps with growth; the largest number of any context below the line.
        steps: number of inspected steps.
        is_leak: whether it looks like a leak: memory grew in many steps, and by an amount that matters.
    """

    size_bytes: int
    grown_steps: int
    steps: int
    is_leak: bool


@dataclass(frozen=True, slots=True)
class GrownLines:
    """The lines under which memory grows, largest growth first, as columns of shape (lines,).

    A profile may have a line for each of a million nodes, so rows are made on demand.

    Attributes:
        frame: a frame of each line.
        size_bytes: as in `GrownLine`.
        grown_steps: as in `GrownLine`.
        grows_often: whether memory grew in many steps, not once or twice.
        is_leak: as in `GrownLine`.
        steps: as in `GrownLine`, one number.
    """

    frame: Ints
    size_bytes: Ints
    grown_steps: Ints
    grows_often: Mask
    is_leak: Mask
    steps: int

    def rows(self, frames: FrameTable, chosen: Ints) -> tuple[GrownLine, ...]:
        """Return the lines at these indices; `frames` are the profile's."""
        columns = (self.frame, self.size_bytes, self.grown_steps, self.is_leak)
        places = zip(*(column[chosen].tolist() for column in columns), strict=True)
        return tuple(
            GrownLine.at(frames[frame], size, grown, self.steps, is_leak)
            for frame, size, grown, is_leak in places
        )


def memory_use(profile: Profile) -> MemoryUse | None:
    """Return the record of PyTorch's memory, or of JAX's memory; None if neither was recorded.

    Raises:
        ProfileDataError: the section is damaged, or newer than this build.
    """
    payload = profile.sections.get(SECTION)
    if payload is None:
        return arrays_use(profile)
    try:
        content = json.loads(payload)
        version = content["version"]
        if version == _LAYOUT:
            return _read(content)
    except (ValueError, TypeError, KeyError) as error:
        raise ProfileDataError(
            f"section '{SECTION}': {type(error).__name__}: {error}; the file is damaged"
        ) from error
    raise ProfileDataError(
        f"section '{SECTION}': layout {version}, this build reads {_LAYOUT}; upgrade deepcontext"
    )


def arrays_use(profile: Profile) -> MemoryUse | None:
    """Return the steps at whose ends JAX's arrays were inspected; None without such steps."""
    counts = (section(profile) or {}).get("buffers", {})
    if not counts.get("step_looks"):  # an older profile has none
        return None
    return MemoryUse(counts["step_looks"], "mark", counts["growth_since_look"], 0, ())


def _read(content: Mapping[str, Any]) -> MemoryUse:
    pools = [
        Pool(**{each.name: pool[each.name] for each in fields(Pool)}) for pool in content["pools"]
    ]
    return MemoryUse(
        int(content["steps"]),
        content.get("step_kind", "mark"),  # an older profile has none, and no calls
        int(content["growth_since_step"]),
        int(content["untracked_bytes"]),
        tuple(sorted(pools, key=lambda pool: (pool.is_device, pool.name))),
    )


def prefixes(profile: Profile) -> tuple[str, ...]:
    """Return the metric prefixes of the recorded kinds of memory: "", "gpu_"."""
    return tuple(
        prefix
        for prefix in ("", GPU_PREFIX)
        if {f"{prefix}alloc_bytes", f"{prefix}growth_bytes"} & profile.metrics.keys()
    )


def held_at_peak(profile: Profile, prefix: str = "", limit: int = 0) -> GroupTable | None:
    """Return the bytes that each line of the user's code held at the peak; None if not recorded."""
    metric = f"{prefix}peak_bytes"
    if metric not in profile.metrics:
        return None
    return by_line(profile, metric, limit, largest="exclusive")


def growth(
    profile: Profile, prefix: str = "", limit: int = 0, *, only_leaks: bool = False
) -> tuple[GrownLine, ...]:
    """Return the lines under which memory grew over the last steps, largest growth first."""
    lines = grown_lines(profile, prefix)
    chosen = np.flatnonzero(lines.is_leak) if only_leaks else np.arange(len(lines.frame))
    return lines.rows(profile.frames, chosen[: limit or None])


def grown_lines(profile: Profile, prefix: str = "") -> GrownLines:
    """Return the lines under which memory grew over the last steps; empty if not recorded."""
    return profile.once((GrownLines, prefix), lambda: _grown_lines(profile, prefix))


def _grown_lines(profile: Profile, prefix: str) -> GrownLines:
    use, metric = memory_use(profile), f"{prefix}growth_bytes"
    if use is None or metric not in profile.metrics:
        none, no_mask = np.zeros(0, np.int64), np.zeros(0, np.bool_)
        return GrownLines(none, none, none, no_mask, no_mask, 0)
    lines, rows = UserLines.of(profile), profile.metrics[metric]
    of_row = lines.of_node[rows.node]
    has_line = of_row != NO_GROUP
    of_row = of_row[has_line]
    sizes = sums(of_row, rows.values()[has_line], len(lines.frame))
    counts = np.zeros(len(sizes), np.int64)
    # NumPy is fast here only where both have one type.
    np.maximum.at(counts, of_row, rows.count[has_line].astype(np.int64))
    order = np.lexsort((lines.frame, -sizes))
    grown = order[sizes[order] > 0]
    sizes, counts, steps = sizes[grown], counts[grown], use.growth_steps
    grows_often = counts >= max(_FEWEST_GROWN, steps * _LEAST_STEPS)
    peak = total(profile, f"{prefix}peak_bytes") or total(profile, PEAK)
    is_leak = grows_often & (sizes >= max(_LEAST_GROWTH, _LEAST_OF_PEAK * peak))
    if steps >= _FEWEST_STEPS:
        always = counts == steps
        is_leak[always] = sizes[always] * _STEPS_OF_A_RUN >= _LEAST_IN_A_RUN * steps
    return GrownLines(lines.frame[grown], sizes, counts, grows_often, is_leak, steps)
