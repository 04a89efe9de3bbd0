"""Time and launches of GPU work by kernel: data for the report. Prints nothing.

Invariant: the kernels' times add up to the profile's GPU time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import GPU_TIME_NS, LAUNCH_COUNT
from deepcontext.profiler.model.metric_values import total
from deepcontext.profiler.summaries.groups import FrameGroups, Grouping

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile_model import ProfileModel as Profile


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel, copy or memset, summed over all launch sites.

    Attributes:
        name: as reported by the driver.
        gpu_time_ns: time on the device.
        launches: number of executions.
        phases: `gpu_time_ns` by phase, in the order of `PHASES`.
    """

    name: str
    gpu_time_ns: int
    launches: int
    phases: tuple[int, ...]

    @property
    def mean_ns(self) -> float | None:
        """Mean time of a launch; None where launches were not counted."""
        return self.gpu_time_ns / self.launches if self.launches else None


@dataclass(frozen=True, slots=True)
class GpuUse:
    """All work on devices.

    Attributes:
        time_ns: sum over kernels, copies and memsets.
        launches: number of kernels, copies and memsets that ran.
        kernels: the kernels, copies and memsets with the most GPU time, largest first.
        kernel_count: number of distinct ones, shown or not.
    """

    time_ns: int
    launches: int
    kernels: tuple[Kernel, ...]
    kernel_count: int


# By kernel name, largest exclusive value first.
by_kernel: Final = Grouping(FrameKind.KERNEL, largest="exclusive")


def _work(profile: Profile) -> FrameGroups:
    """Group kernels, copies and memsets by name."""
    frames = profile.frames
    is_work = (frames.kind == FrameKind.KERNEL) | (frames.kind == FrameKind.COPY)
    return FrameGroups.of_frames(is_work, frames.name.astype(np.int64))


_by_work: Final = Grouping(FrameKind.KERNEL, largest="exclusive", groups=_work)


def gpu_use(profile: Profile, limit: int = 0) -> GpuUse | None:
    """Return the GPU's work, None if none was measured; `limit` 0 returns all kernels."""
    time_ns = total(profile, GPU_TIME_NS.name)
    if not time_ns:
        return None
    table = _by_work(profile, GPU_TIME_NS.name, limit)
    launches: dict[str, int] = {}
    if LAUNCH_COUNT.name in profile.metrics:
        launches = {row.name: row.exclusive for row in _by_work(profile, LAUNCH_COUNT.name).rows}
    kernels = tuple(
        Kernel(row.name, row.exclusive, launches.get(row.name, 0), row.phases)
        for row in table.rows
        if row.exclusive
    )
    return GpuUse(time_ns, total(profile, LAUNCH_COUNT.name), kernels, table.row_count)
