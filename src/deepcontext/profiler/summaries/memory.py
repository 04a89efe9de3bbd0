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
from deepcontext.profiler.model.grouping import sums
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.jax.programs import section
from deepcontext.profiler.summaries.lines import by_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.groups import Group, GroupTable

SECTION: Final = "memory"
GPU_PREFIX: Final = "gpu_"
_LAYOUT: Final = 1
# A cache or a buffer grows a few times; a leak keeps growing.
_FEWEST_GROWN: Final = 3
_LEAST_SHARE: Final = 0.1


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
        steps: number of marked steps; for JAX, steps at whose end arrays were inspected.
        growth_since_step: the step from whose end growth is counted; 0 if growth is not counted.
        untracked_bytes: bytes allocated while too many allocations were alive to track more.
        pools: the memories, the host's first; empty for JAX.
    """

    steps: int
    growth_since_step: int
    untracked_bytes: int
    pools: tuple[Pool, ...]

    @property
    def growth_steps(self) -> int:
        """Number of steps over which growth is counted."""
        return self.steps - self.growth_since_step if self.growth_since_step else 0


@dataclass(frozen=True, slots=True)
class GrownLine:
    """Memory growth under a line of the user's code.

    Attributes:
        file: source file.
        line: 1-based.
        size_bytes: growth in bytes.
        grown_steps: number of steps with growth; the largest number of any context below the line.
        steps: number of inspected steps.
    """

    file: str
    line: int
    size_bytes: int
    grown_steps: int
    steps: int

    @property
    def is_steady(self) -> bool:
        """Whether the growth looks like a leak: memory grew in many steps, not once or twice."""
        return _is_steady(self.grown_steps, self.steps)


@dataclass(frozen=True, slots=True)
class Growth:
    """A line of the user's code under which memory grows from step to step.

    Attributes:
        line: the source line; `exclusive` is the growth in bytes.
        grown_steps: number of steps with growth.
        steps: number of inspected steps.
    """

    line: Group
    grown_steps: int
    steps: int

    @property
    def is_steady(self) -> bool:
        """Whether the growth looks like a leak: memory grew in many steps, not once or twice."""
        return _is_steady(self.grown_steps, self.steps)


def _is_steady(grown_steps: int, steps: int) -> bool:
    return grown_steps >= max(_FEWEST_GROWN, steps * _LEAST_SHARE)


def memory_use(profile: Profile) -> MemoryUse | None:
    """Return the record of PyTorch's memory, else of JAX's; None if neither was recorded.

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
    return MemoryUse(counts["step_looks"], counts["growth_since_look"], 0, ())


def _read(content: Mapping[str, Any]) -> MemoryUse:
    pools = [
        Pool(**{each.name: pool[each.name] for each in fields(Pool)}) for pool in content["pools"]
    ]
    return MemoryUse(
        int(content["steps"]),
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
    return _by_line(profile, f"{prefix}peak_bytes", limit)


def growth(profile: Profile, prefix: str = "", limit: int = 0) -> tuple[Growth, ...]:
    """Return the lines under which memory grew over the last steps, largest growth first."""
    use, metric = memory_use(profile), f"{prefix}growth_bytes"
    table = _by_line(profile, metric, limit)
    if table is None or use is None:
        return ()
    grown = {(each.file, each.line): each.grown_steps for each in grown_lines(profile, prefix)}
    return tuple(
        Growth(row, grown.get((row.file, row.line), 0), use.growth_steps)
        for row in table.rows
        if row.exclusive > 0
    )


def _by_line(profile: Profile, metric: str, limit: int) -> GroupTable | None:
    if metric not in profile.metrics:
        return None
    return by_line(profile, metric, limit, largest="exclusive")


def grown_lines(profile: Profile, prefix: str = "") -> list[GrownLine]:
    """Return growth by line, unordered: like `growth`, without the other columns of a table."""
    use, metric = memory_use(profile), f"{prefix}growth_bytes"
    if use is None or metric not in profile.metrics:
        return []
    tree, rows, frames = profile.tree, profile.metrics[metric], profile.frames
    nearest = tree.nearest(profile.frames.is_user_code()[tree.frame])[rows.node]
    has_line = nearest != NO_NODE
    of_row = tree.frame[nearest[has_line]]
    lines = frames.source_line()[of_row]
    found, first, line = np.unique(lines, return_index=True, return_inverse=True)
    sizes = sums(line, rows.total[has_line], len(found))
    counts = np.zeros(len(found), np.int64)
    np.maximum.at(counts, line, rows.count[has_line])
    return [
        GrownLine(
            frames.strings[int(frames.file[frame])],
            int(frames.line[frame]),
            size,
            count,
            use.growth_steps,
        )
        for frame, size, count in zip(
            of_row[first].tolist(), sizes.tolist(), counts.tolist(), strict=True
        )
    ]
