"""Batches of many tensors, which the loop takes from its workers one by one.

A tensor that a worker hands over has its own piece of shared memory, and the loop, or the thread that pins
memory, connects to the worker to open it. Does not see arrays, which are sent as bytes.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.elapsed import ELAPSED_TIME_NS, is_sampled
from deepcontext.profiler.model.metric_values import counts_or_zeros, exclusive_or_zeros, total

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.model.query import Query
    from deepcontext.profiler.summaries.loader_workers import LoaderTime

# Of the time in which the loop waits for batches.
_LEAST_SHARE: Final = 0.2
# Joining the tensors of a batch with fewer fields changes little.
_LEAST_TENSORS: Final = 16
# Fewer than ten samples at the usual rate say little about a share.
_LEAST_NS: Final = 100_000_000
_REBUILDING: Final = "torch/multiprocessing/reductions.py"
_PINNING: Final = "_pin_memory_loop"
# Source: torch/_utils.py: `_rebuild_tensor` gives each tensor its storage.
_SET_STORAGE: Final = "aten::set_"


def finding(profile: Profile, scopes: Query, wait_ns: int, batches: int) -> Finding | None:
    """Report that a loop waits because it takes many tensors one by one from its workers.

    Args:
        profile: the process of the loop.
        scopes: the calls that wait for a batch.
        wait_ns: host time of these calls.
        batches: how many batches they returned.
    """
    if not is_sampled(profile.metrics) or batches <= 0:
        return None
    tree = profile.tree
    pinning = source_locations.nodes_named(profile, FrameKind.PYTHON, {_PINNING})
    waiting = tree.at_or_below(scopes.mask())
    taking = waiting | tree.at_or_below(pinning.mask())
    sets = source_locations.operators(profile, {_SET_STORAGE}).mask() & taking
    tensors = int(counts_or_zeros(profile, CALL_DURATION_NS.name)[sets].sum()) // batches
    frames = profile.frames
    is_rebuilding = np.array(
        [frames.strings[int(file)].endswith(_REBUILDING) for file in frames.file], np.bool_
    )
    rebuilding = tree.at_or_below(is_rebuilding[tree.frame] & taking)
    elapsed = exclusive_or_zeros(profile, ELAPSED_TIME_NS.name)
    value, waited = int(elapsed[rebuilding].sum()), int(elapsed[waiting].sum())
    share = min(value / waited, 1.0) if waited else 0.0
    if tensors < _LEAST_TENSORS or share < _LEAST_SHARE or value < _LEAST_NS:
        return None
    location = source_locations.by_line(scopes, HOST_TIME_NS.name)[0]
    where = source_locations.location_text(profile, location.frame)
    wait_share = wait_ns / total(profile, HOST_TIME_NS.name)
    saved = int(share * wait_ns)
    return Finding(
        id="data_loading",
        severity=Severity.of_share(wait_share),
        title=(
            f"{wait_share:.0%} of the time the program waits for data at {where}, {share:.0%} of it "
            f"while {tensors} tensors of each batch are handed over by the workers one by one"
        ),
        nodes=tuple(scopes.nodes().tolist()[:8]),
        evidence={
            "wait_ns": wait_ns,
            "wait_share": wait_share,
            "hand_over_ns": saved,
            "hand_over_share": share,
            "batch_tensors_count": tensors,
            "batches_count": batches,
        },
        gain=source_locations.bound(
            profile, HOST_TIME_NS.name, saved, "a batch is a few tensors, handed over at once"
        ),
        advice=_advice("the collate_fn"),
        misleads=(
            "each tensor is large, so that the copy into shared memory takes the time, and not their number"
        ),
    )


def with_workers(profile: Profile, found: Finding, times: LoaderTime) -> Finding:
    """Return a finding of this rule with the line at which the workers make what they hand over."""
    made = times.joining or times.lines
    if not made:
        return found
    where = source_locations.location_text(profile, made[0][0])
    function = f"the collate_fn at {where}" if times.joining else "a collate_fn"
    return dataclasses.replace(
        found, title=f"{found.title}; they are made at {where}", advice=_advice(function)
    )


def _advice(function: str) -> str:
    return (
        f"each tensor has its own piece of shared memory and its own message: join the tensors of a field "
        f"in {function} (torch.cat, and the number of rows of each sample), and split them in the loop "
        "(torch.split, whose views cost little); or load without workers (num_workers=0) if samples are cheap"
    )
