"""Notes of a report about a program that called no operators.

Collectors that had nothing to record (no GPU, jax not imported) are named in the trust report and by
`doctor`, not here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.status import Status
from deepcontext.profiler.model.still_running import is_running
from deepcontext.profiler.summaries.gpu import gpu_use
from deepcontext.profiler.summaries.measures import default_metric

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_FRAMEWORKS: Final = ("torch", "jax")
_SHORT_NS: Final = 100_000_000
# Programs that only start others, as they are named on a command line.
_LAUNCHERS: Final = frozenset({
    "torchrun",
    "torch.distributed.run",
    "torch.distributed.launch",
    "accelerate",
    "accelerate.commands.launch",
    "deepspeed",
})

_LAUNCHER_ADVICE: Final = (
    "starts the program in new processes, which are not profiled. Put deepcontext inside the "
    "launch, so that each process writes its profile: torchrun --nproc-per-node N -m deepcontext "
    "profile train.py"
)
_MORE_OFTEN: Final = "a shorter --snapshot-interval writes more often"
# By whether the program still runs.
_SNAPSHOT: Final = {
    True: f"The program still runs, and this is its last snapshot; {_MORE_OFTEN}.",
    False: "The program ended without an exit (a signal, os._exit, abort, exec), and this is its last "
    f"snapshot; {_MORE_OFTEN}.",
    None: "This is a snapshot, written while the program ran. If the program has ended, it ended "
    f"without an exit (a signal, os._exit, abort, exec); {_MORE_OFTEN}.",
}


def notes(profile: Profile) -> tuple[str, ...]:
    """Return what a user may have expected to find in the profile, and what to do."""
    if profile.trust.read_from is not None:
        return ("The file has no operators of PyTorch; the report shows what else it has.",)
    launcher = profile.run.script.removeprefix("-m ").rpartition("/")[2]
    if launcher in _LAUNCHERS:
        return (f"{launcher} {_LAUNCHER_ADVICE}",)
    status = {collector.name: collector.status for collector in profile.trust.collectors}
    found = []
    if gpu_use(profile, 1) is not None:
        found.append(
            "The program called no operators of PyTorch or JAX; the report shows the GPU's work."
        )
    loaded = [name for name in _FRAMEWORKS if status.get(name) is Status.RAN]
    if loaded:
        found.append(
            f"The program imported {' and '.join(loaded)}, but called no operator while it was "
            "profiled."
        )
    if any(status.get(name) is Status.UNAVAILABLE for name in _FRAMEWORKS):
        found.append("Run 'deepcontext doctor' to see what can be measured on this machine.")
    if profile.run.exit_reason == "snapshot":
        found.append(_SNAPSHOT[is_running(profile.run)])
    elif not _has_values(profile):
        found.append(
            "There is nothing to show: the program called no operator of PyTorch or JAX, and "
            f"{_why_not_sampled(status.get('cpu sampling'), profile.run.wall_ns)}."
        )
    return tuple(found)


def _has_values(profile: Profile) -> bool:
    """Return whether anything was measured below the level of threads."""
    kinds = profile.frames.kind[profile.tree.frame]
    is_inner = ~np.isin(kinds, (FrameKind.ROOT, FrameKind.RANK, FrameKind.THREAD))
    return bool(profile.exclusive(default_metric(profile))[is_inner].any())


def _why_not_sampled(status: Status | None, wall_ns: int) -> str:
    if status is Status.OFF:
        return "sampling was switched off (--cpu-rate 0)"
    if status is Status.UNAVAILABLE:
        return "the program could not be sampled"
    if wall_ns < _SHORT_NS:
        return "the program ended before the first sample"
    return "no sample could be attributed to a line of code"
