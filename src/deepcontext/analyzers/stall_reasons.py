"""Stall reasons: what the instructions of the hot kernels wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.model.metric_values import total

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_SAMPLES: Final = "stall_samples"
_LEAST_SHARE: Final = 0.10
_LEAST_REASON_SHARE: Final = 0.30
_LEAST_SAMPLES: Final = 100
# Not a stall: the instruction was issued, or could have been.
_NO_STALLS: Final = ("selected", "not_selected")
# Source: NVIDIA, "Nsight Compute, Kernel Profiling Guide", section "Warp Stall Reasons".
_ADVICE: Final = {
    "long_scoreboard": (
        "the kernel waits for global memory: make accesses contiguous and wider (vectorised loads), "
        "fuse the kernel with its neighbours so that values stay in registers"
    ),
    "short_scoreboard": "the kernel waits for shared memory or special functions: avoid bank conflicts",
    "math_pipe": "an arithmetic unit is fully used: use a cheaper type or tensor cores",
    "imc": (
        "the kernel misses the constant cache: read parameters once, index constants by values that "
        "are equal within a warp; type conversions with vector instructions need fewer constants"
    ),
    "lg_throttle": "the kernel issues too many memory instructions: load wider values, less often",
    "mio_throttle": "the kernel issues too many shared-memory instructions: load wider values",
    "barrier": "threads wait for one another: use smaller blocks, or less work between barriers",
    "wait": "the kernel waits for fixed latencies: unroll, so that more instructions are independent",
    "no_instruction": "the kernel waits for its instructions: its code is too large for the cache, or tiny",
    "branch_resolving": "the kernel branches too often: decide per warp, not per thread",
}


def _find(profile: Profile) -> list[Finding]:
    whole = total(profile, source_locations.GPU_TIME)
    if not whole or not total(profile, _SAMPLES):
        return []
    kernels = profile.query().kind(FrameKind.KERNEL).where(gpu_time_ns__inclusive__gt=0)
    samples = profile.exclusive(_SAMPLES)
    found = []
    for kernel in kernels:
        share = kernel.value(source_locations.GPU_TIME, inclusive=True) / whole
        if share < _LEAST_SHARE:
            continue
        reasons = {
            profile.frame(child).name: (int(samples[child]), child)
            for child in profile.tree.children(kernel.id)
            if profile.frame(child).kind is FrameKind.STALL
            and not any(profile.frame(child).name.endswith(each) for each in _NO_STALLS)
        }
        all_samples = sum(count for count, _ in reasons.values())
        if all_samples < _LEAST_SAMPLES:
            continue
        name, (count, node) = max(reasons.items(), key=lambda item: item[1])
        if count / all_samples >= _LEAST_REASON_SHARE:
            part = count / all_samples
            found.append(_finding(profile, (kernel.id, node), name, share, part))
    return found


def _finding(
    profile: Profile, nodes: tuple[int, int], reason: str, share: float, part: float
) -> Finding:
    kernel = profile.frame(nodes[0]).name
    value = int(profile.inclusive(source_locations.GPU_TIME)[nodes[0]])
    advice = next((text for key, text in _ADVICE.items() if key in reason.lower()), "")
    return Finding(
        id="stall_reasons",
        severity=Severity.of_share(share * part),
        title=f"{part:.0%} of the stalls in '{kernel}' are '{reason}'",
        nodes=nodes,
        evidence={"kernel_share": share, "reason_share": part, "kernel_ns": value},
        gain=source_locations.bound(
            profile,
            source_locations.GPU_TIME,
            round(value * part),
            "the kernel's time falls with its stalls, and no other reason takes their place",
        ),
        advice=advice or "see the vendor's description of this stall reason",
        misleads=(
            "samples show what warps wait for, not whether the kernel would be faster without the "
            "wait: a kernel at the limit of the memory bandwidth always waits for memory"
        ),
    )


ANALYZER = Analyzer("stall_reasons", "what do the hot kernels wait for?", _find)
