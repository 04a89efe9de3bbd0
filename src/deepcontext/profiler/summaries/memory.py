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
from deepcontext.profiler.model.grouping import NO_GROUP
from deepcontext.profiler.summaries.jax.programs import section
from deepcontext.profiler.summaries.lines import UserLines, by_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.groups import GroupTable

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
    """A line of the user's code under which memory grows from step to step.

    Attributes:
        function: name of the function the line is in.
        file: source file.
        line: 1-based.
        size_bytes: growth in bytes.
        grown_steps: number of steps with growth; the largest number of any context below the line.
        steps: number of inspected steps.
    """

    function: str
    file: str
    line: int
    size_bytes: int
    grown_steps: int
    steps: int

    @property
    def is_steady(self) -> bool:
        """Whether the growth looks like a leak: memory grew in many steps, not once or twice."""
        return self.grown_steps >= max(_FEWEST_GROWN, self.steps * _LEAST_SHARE)


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
    metric = f"{prefix}peak_bytes"
    if metric not in profile.metrics:
        return None
    return by_line(profile, metric, limit, largest="exclusive")


def growth(profile: Profile, prefix: str = "", limit: int = 0) -> tuple[GrownLine, ...]:
    """Return the lines under which memory grew over the last steps, largest growth first."""
    grown = profile.once((GrownLine, prefix), lambda: _growth(profile, prefix))
    return grown[: limit or None]


def _growth(profile: Profile, prefix: str) -> tuple[GrownLine, ...]:
    use, metric = memory_use(profile), f"{prefix}growth_bytes"
    if use is None or metric not in profile.metrics:
        return ()
    lines, rows = UserLines.of(profile), profile.metrics[metric]
    sizes = lines.sums(profile.exclusive(metric))
    of_row = lines.of_node[rows.node]
    has_line = of_row != NO_GROUP
    counts = np.zeros(len(sizes), np.int64)
    np.maximum.at(counts, of_row[has_line], rows.count[has_line])
    order = np.lexsort((lines.frame, -sizes))
    grown = order[sizes[order] > 0]
    frames, of_line = profile.frames, lines.frame[grown]
    columns = (frames.name[of_line], frames.file[of_line], frames.line[of_line], sizes[grown])
    # Column by column, because a profile may have a line for each of a million nodes.
    return tuple(
        GrownLine(
            frames.strings[int(name)],
            frames.strings[int(file)],
            line,
            size,
            count,
            use.growth_steps,
        )
        for name, file, line, size, count in zip(
            *(column.tolist() for column in columns), counts[grown].tolist(), strict=True
        )
    )
