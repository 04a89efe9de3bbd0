"""What became of every launch: the GPU time that a profile lacks, with its number and its cause.

Reads the native collectors' figures; says nothing about idle time. Invariant: launches that left a record
+ records dropped + records without a known launch + launches not accounted for = launches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format.status import ERROR_MARK

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# A loss above this share makes the collector's status "degraded".
_TOLERATED_SHARE: Final = 0.01
# With this many launches, the absence of any record is not a matter of timing.
_MANY_LAUNCHES: Final = 1000
_OTHER_TOOL: Final = "another profiler (torch.profiler, jax.profiler, nsys, rocprof)"


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that the figures lack.

    Attributes:
        text: how much, and why, as a sentence without a full stop.
        is_degrading: it is more than the figures tolerate.
    """

    text: str
    is_degrading: bool


def error_of(figures: Mapping[str, int], *, is_over: bool, was_used: bool = False) -> str:
    """Say that nothing at all was received although the program used the GPU; "" otherwise.

    Args:
        figures: of the native collector.
        is_over: the session has ended.
        was_used: a framework took memory of the GPU, so that there were launches.
    """
    launches = figures["launches"]
    if was_used and is_over and launches == 0 and figures["received"] == 0:
        return (
            f"{ERROR_MARK}the program used the GPU and not one launch was seen, so all GPU times in "
            "this profile are missing; the program may use another copy of the profiling library "
            "than deepcontext, or its run time may have started before the session"
        )
    is_empty = figures["received"] == 0 and launches > 0
    if not is_empty or not (is_over or launches >= _MANY_LAUNCHES):
        return ""
    lost = f"{figures['dropped']} were dropped" if figures["dropped"] else "none was dropped"
    return (
        f"{ERROR_MARK}the program launched GPU work {launches} times and not one record arrived "
        f"({lost} by the vendor's count), so all GPU times in this profile are missing; another "
        "profiler may have taken the records (torch.profiler, jax.profiler, nsys, rocprof), or "
        "the driver may be older than its profiling library"
    )


def losses(figures: Mapping[str, int], *, is_over: bool) -> Iterator[Loss]:
    """Yield what was lost.

    Args:
        figures: of the native collector.
        is_over: the session has ended, so that every launch should have left a record.
    """
    received = figures["received"]
    if figures["dropped"]:
        text = (
            f"{figures['dropped']} records of GPU work were dropped by the vendor's library: GPU "
            f"times are too low{_declined(figures)}"
        )
        yield _loss(text, figures["dropped"], received + figures["dropped"])
    if figures["unmatched"]:
        text = (
            f"{figures['unmatched']} records of GPU work have no known call path and are shown as "
            "'GPU work of unknown origin'"
        )
        yield _loss(text, figures["unmatched"], received)
    if figures["communication"]:
        text = (
            f"{figures['communication']} kernels of RCCL have no known call path, because roctracer "
            "gives them no correlation id (ROCm/roctracer issue 100): they are shown as "
            "'communication between GPUs (RCCL)'"
        )
        yield Loss(text, is_degrading=False)
    if figures["bad_times"]:
        text = (
            f"{figures['bad_times']} of {received} records of GPU work carry no usable times, so "
            "their GPU time is missing"
        )
        yield _loss(text, figures["bad_times"], received)
    if crowded := figures.get("crowded", 0):
        text = (
            f"for {crowded} of {received} records, more than 64 pieces of GPU work ran at once on one "
            "device: times of communication that nothing hides are approximate there"
        )
        yield Loss(text, is_degrading=False)
    if figures["broken_buffers"]:
        text = (
            f"{figures['broken_buffers']} buffers of GPU records could not be read to their end, so "
            "the GPU time of the rest is missing"
        )
        yield Loss(text, is_degrading=True)
    yield from _of_torch_profiler(figures)
    yield from _without_record(figures, is_over=is_over)


def _of_torch_profiler(figures: Mapping[str, int]) -> Iterator[Loss]:
    """Say what torch.profiler took, or did not get."""
    if taken := figures.get("taken_launches", 0):
        text = (
            f"{taken} of {figures['launches']} launches of GPU work ran while torch.profiler had "
            "CUPTI: the GPU time of these launches is in its trace, not in this profile"
        )
        yield _loss(text, taken, figures["launches"])
    if figures.get("blinded_runs", 0):
        text = (
            "torch.profiler recorded no GPU work while this session held CUPTI, and will record none "
            "until the program ends (PyTorch with Kineto before August 2026): run the program "
            "without deepcontext for a trace of torch.profiler"
        )
        yield Loss(text, is_degrading=False)


def _without_record(figures: Mapping[str, int], *, is_over: bool) -> Iterator[Loss]:
    launches = figures["launches"] if is_over else figures["due_launches"]
    known = figures["answered"] + figures["dropped"] + figures["unmatched"]
    known += figures["communication"]
    missing = launches - known - figures.get("taken_launches", 0)
    if missing <= 0 or figures["received"] == 0:  # nothing received: an error of its own
        return
    cause = "" if figures["broken_buffers"] else f": {_OTHER_TOOL} may have taken the records"
    text = (
        f"{missing} of {launches} launches of GPU work left no record, so the GPU time of these "
        f"launches is missing{cause}"
    )
    yield _loss(text, missing, launches)


def _declined(figures: Mapping[str, int]) -> str:
    if not figures["declined_buffers"]:
        return ""
    return (
        f"; {figures['declined_buffers']} times all buffers were in use "
        "(DEEPCONTEXT_GPU_POOL_BYTES sets their size)"
    )


def _loss(text: str, lost: int, whole: int) -> Loss:
    return Loss(text, is_degrading=lost > whole * _TOLERATED_SHARE)
