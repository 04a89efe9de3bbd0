"""What a profile says about memory, as tables; nothing is formatted or printed.

Reads the section "memory" and the metrics that the collector of memory wrote; of JAX's arrays, whose
other tables are in `jax_memory`, what grows. Invariant: the roles of a pool, the unknown part with
them, sum to its peak.
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
# A cache that fills, or a buffer that is grown, does so a few times; a leak goes on.
_FEWEST_GROWN: Final = 3
_LEAST_SHARE: Final = 0.1


@dataclass(frozen=True, slots=True)
class Pool:
    """One memory: the host's, or that of one device.

    Attributes:
        name: "cpu", "cuda:0", ...
        is_device: not the host's.
        allocations: number of allocations.
        alloc_bytes: allocated over the run.
        live_bytes: held when the profile was written.
        peak_bytes: held when the most was held.
        peak_after_ns: from the session's start to that moment.
        peak_step: steps that had ended by then.
        growth_bytes: held at the end of the last step beyond the end of the step that growth is
            counted from; below 0 when less is held.
        reserved_peak_bytes: what the framework's cache took from the driver at most; 0: not told.
        peak_role_bytes: the peak by what the memory was for; "unknown" among them.
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
    """What a profile's program allocated.

    Attributes:
        steps: steps that were marked; of JAX's arrays, those at whose end they were looked at.
        growth_since_step: growth is counted from the end of this one; 0 where it is not.
        untracked_bytes: allocated while too many allocations were alive to follow more.
        pools: the memories, the host's first; none of JAX.
    """

    steps: int
    growth_since_step: int
    untracked_bytes: int
    pools: tuple[Pool, ...]

    @property
    def growth_steps(self) -> int:
        """Number of steps that growth is counted over."""
        return self.steps - self.growth_since_step if self.growth_since_step else 0


@dataclass(frozen=True, slots=True)
class GrownLine:
    """What grew under a line of the user's own code.

    Attributes:
        file: of the line.
        line: its number.
        size_bytes: by how much it grew.
        grown_steps: steps in which it grew: the most of one context below it.
        steps: steps looked at.
    """

    file: str
    line: int
    size_bytes: int
    grown_steps: int
    steps: int

    @property
    def is_steady(self) -> bool:
        """Whether it looks like a leak: it grew in many steps, not once or twice."""
        return _is_steady(self.grown_steps, self.steps)


@dataclass(frozen=True, slots=True)
class Growth:
    """A line of the user's own code under which memory grows from step to step.

    Attributes:
        line: where; its `exclusive` is the growth in bytes.
        grown_steps: steps in which it grew.
        steps: steps looked at.
    """

    line: Group
    grown_steps: int
    steps: int

    @property
    def is_steady(self) -> bool:
        """Whether it looks like a leak: it grew in many steps, not once or twice."""
        return _is_steady(self.grown_steps, self.steps)


def _is_steady(grown_steps: int, steps: int) -> bool:
    return grown_steps >= max(_FEWEST_GROWN, steps * _LEAST_SHARE)


def memory_use(profile: Profile) -> MemoryUse | None:
    """Return what was recorded of PyTorch's memory, else of JAX's, None where neither was.

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
    """Return what was looked at of JAX's arrays at the ends of steps, None where that was none."""
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
    """Return the prefixes of the kinds of memory that the profile has: "", "gpu_"."""
    return tuple(
        prefix
        for prefix in ("", GPU_PREFIX)
        if {f"{prefix}alloc_bytes", f"{prefix}growth_bytes"} & profile.metrics.keys()
    )


def held_at_peak(profile: Profile, prefix: str = "", limit: int = 0) -> GroupTable | None:
    """Return the lines of the user's own code by what they held at the peak, None for no memory."""
    return _by_line(profile, f"{prefix}peak_bytes", limit)


def growth(profile: Profile, prefix: str = "", limit: int = 0) -> tuple[Growth, ...]:
    """Return the lines under which memory grew over the last steps, most first."""
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
    """Return what grew by line, in no order: what `growth` says, without a table's other columns."""
    use, metric = memory_use(profile), f"{prefix}growth_bytes"
    if use is None or metric not in profile.metrics:
        return []
    tree, rows, frames = profile.tree, profile.metrics[metric], profile.frames
    owner = tree.nearest(profile.frames.is_user_code()[tree.frame])[rows.node]
    owned = owner != NO_NODE
    of_row = tree.frame[owner[owned]]
    lines = frames.source_line()[of_row]
    found, first, line = np.unique(lines, return_index=True, return_inverse=True)
    sizes = sums(line, rows.total[owned], len(found))
    counts = np.zeros(len(found), np.int64)
    np.maximum.at(counts, line, rows.count[owned])
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
