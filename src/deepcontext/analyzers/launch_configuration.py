"""Launch configuration: grids that leave most of the GPU unused, blocks that do not fill a warp."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.model.metric_values import total
from deepcontext.profiler.model.tree import NO_NODE

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_GRID: Final = "grid_block_count"
_BLOCK: Final = "block_thread_count"
_LEAST_SHARE: Final = 0.05
# Used if the profile does not record the GPU's multiprocessors: too few for any GPU, so the finding is
# right, but has no bound.
_FEW_BLOCKS: Final = 16
_SHOWN: Final = 8  # kernels that the finding leads to
_WARP: Final = {"nvidia": 32, "amd": 64}
# Kernels of many kinds with small grids have one cause. Those of collectives have few blocks on purpose.
_LEAST_KINDS: Final = 3
_MOST_OF_TIME: Final = 0.5
_OF_COLLECTIVES: Final = ("nccl", "rccl")


def _find(profile: Profile) -> list[Finding]:
    whole = source_locations.judged_total(profile, source_locations.GPU_TIME)
    if not whole or _GRID not in profile.metrics or _BLOCK not in profile.metrics:
        return []
    warp = max((_WARP[name] for name in source_locations.vendors(profile)), default=_WARP["nvidia"])
    kernels = profile.query().kind(FrameKind.KERNEL).nodes()
    share = profile.exclusive(source_locations.GPU_TIME)[kernels] / whole
    grid, block = _mean(profile, _GRID, kernels), _mean(profile, _BLOCK, kernels)
    processors = source_locations.least_of_devices(profile, "multiprocessor_count")
    is_small = (
        (grid > 0) & (grid < (processors or _FEW_BLOCKS)) & ~_of_collectives(profile, kernels)
    )
    small = np.flatnonzero(is_small)
    kinds = {profile.frame(int(kernels[i])).name for i in small.tolist()}
    is_batch = bool(
        processors and len(kinds) >= _LEAST_KINDS and share[small].sum() >= _MOST_OF_TIME
    )
    found = [_small_batch(profile, kernels[small], grid[small], processors)] if is_batch else []
    for location in np.flatnonzero(share >= _LEAST_SHARE).tolist():
        node = int(kernels[location])
        if is_small[location] and not is_batch:
            found.append(_small_grid(profile, node, float(grid[location]), processors))
        if 0 < block[location] < warp or block[location] % warp:
            found.append(_odd_block(profile, node, float(block[location]), warp))
    return found


def _of_collectives(profile: Profile, kernels: source_locations.Ints) -> source_locations.Mask:
    names = [profile.frame(int(node)).name.lower() for node in kernels.tolist()]
    return np.array([name.startswith(_OF_COLLECTIVES) for name in names], dtype=np.bool_)


def _mean(profile: Profile, metric: str, nodes: source_locations.Ints) -> source_locations.Floats:
    return np.asarray(
        profile.exclusive(metric)[nodes] / np.maximum(profile.counts(metric)[nodes], 1)
    )


def _small_grid(profile: Profile, node: int, blocks: float, processors: int) -> Finding:
    value = int(profile.exclusive(source_locations.GPU_TIME)[node])
    share = value / total(profile, source_locations.GPU_TIME)
    where = _where(profile, node)
    name = source_locations.kernel_name(profile.frame(node).name)
    gain = None
    if processors:
        gain = source_locations.bound(
            profile,
            source_locations.GPU_TIME,
            round(value * (1 - blocks / processors)),
            f"all {processors} multiprocessors of the GPU share its work evenly",
        )
    return Finding(
        id="launch_configuration",
        severity=Severity.of_share(share),
        title=(
            f"'{name}' from {where} runs in {blocks:.0f} blocks, too few for "
            + (f"{processors} multiprocessors" if processors else "a GPU")
        ),
        nodes=(node,),
        evidence={
            "grid_blocks_count": round(blocks, 1),
            "multiprocessors": processors or "unknown",
            "kernel_share": share,
        },
        gain=gain,
        advice="work on larger batches or split the reduction, so that there are more blocks",
        misleads=(
            "the kernel runs beside kernels of another stream; the blocks are large and few on purpose"
        ),
    )


def _small_batch(
    profile: Profile,
    kernels: source_locations.Ints,
    blocks: source_locations.Floats,
    processors: int,
) -> Finding:
    time_ns = profile.exclusive(source_locations.GPU_TIME)[kernels]
    whole = total(profile, source_locations.GPU_TIME)
    order = np.argsort(-time_ns)
    costliest = tuple(int(kernels[i]) for i in order[:_SHOWN])
    mean = float(np.average(blocks, weights=time_ns))
    share = float(time_ns.sum()) / whole
    return Finding(
        id="launch_configuration",
        severity=Severity.of_share(share * (1 - mean / processors)),
        title=(
            f"the batch is too small for the GPU: kernels that take {share:.0%} of its time run in "
            f"{mean:.0f} blocks on average, on {processors} multiprocessors; most of it from "
            f"{_where(profile, costliest[0])}"
        ),
        nodes=costliest,
        evidence={
            "kernels_share": share,
            "kernels": len({profile.frame(int(node)).name for node in kernels.tolist()}),
            "grid_blocks_count": round(mean, 1),
            "multiprocessors": processors,
        },
        gain=source_locations.bound(
            profile,
            source_locations.GPU_TIME,
            round(float((time_ns * (1 - blocks / processors)).sum())),
            f"a batch that fills all {processors} multiprocessors takes no longer",
        ),
        advice=(
            "raise the batch until a step takes noticeably longer; in inference, gather requests that "
            "arrive together; where the batch is fixed, run independent parts on several streams"
        ),
        misleads=(
            "a single request has to be answered at once; other work shares the GPU; memory is full"
        ),
    )


def _where(profile: Profile, node: int) -> str:
    owner = int(source_locations.climb(profile, np.array([node]), profile.is_user_code())[0])
    return source_locations.location_text(
        profile, None if owner == NO_NODE else profile.frame(owner)
    )


def _odd_block(profile: Profile, node: int, threads: float, warp: int) -> Finding:
    name = source_locations.kernel_name(profile.frame(node).name)
    value = int(profile.exclusive(source_locations.GPU_TIME)[node])
    # Share of idle threads in the last warp of a block.
    idle = 1 - threads / (-(-threads // warp) * warp)
    return Finding(
        id="launch_configuration",
        severity=Severity.of_share(idle * value / total(profile, source_locations.GPU_TIME)),
        title=(
            f"'{name}' from {_where(profile, node)} has blocks of {threads:.0f} "
            f"threads, not a multiple of the {warp} threads that this GPU runs together"
        ),
        nodes=(node,),
        evidence={"block_threads_count": round(threads, 1), "warp_threads_count": warp},
        gain=source_locations.bound(
            profile,
            source_locations.GPU_TIME,
            round(value * idle),
            "idle threads of a warp share the work",
        ),
        advice=(
            f"use blocks of a multiple of {warp} threads; a kernel written for warps of 32 leaves "
            "half of a 64-wide wavefront idle on AMD GPUs"
        ),
        misleads="the kernel waits for memory, so idle threads cost nothing",
    )


ANALYZER = Analyzer("launch_configuration", "do launches fill the GPU?", _find)
