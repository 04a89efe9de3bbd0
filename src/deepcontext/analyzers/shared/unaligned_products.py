"""Products on tensor cores with a size that is no multiple of 16 bytes, told by their kernels' names.

cuBLAS then takes a kernel of CUTLASS that reads element by element: ``cutlass_75_tensorop_bf16_..._align1``.
Measured on an H100 (torch 2.11, CUDA 13.0): the product of 4,096 x 768 with 768 x 50,257 numbers of bfloat16
takes 3.34 ms, with 50,304 columns 0.50 ms; a training step of GPT-2 small 46.7 and 32.2 ms.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import FrameKind

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_LEAST_SHARE: Final = 0.05
# The number is of elements that are read at once: 8 of 16 bits, 4 of 32 bits are 16 bytes.
_UNALIGNED: Final = re.compile(
    r"cutlass_\w*tensorop_\w*(?:(?:f16|bf16|h\d+gemm)\w*_align[124]|(?:tf32|s1688)\w*_align[12])\b"
)


def unaligned_products(profile: Profile) -> list[Finding]:
    """Return a finding where such kernels take much of the GPU's time."""
    if source_locations.GPU_TIME not in profile.metrics:
        return []
    whole = source_locations.judged_total(profile, source_locations.GPU_TIME)
    kernels = source_locations.nodes_named(
        profile, FrameKind.KERNEL, lambda name: _UNALIGNED.search(name) is not None
    )
    spent = kernels.total(source_locations.GPU_TIME)
    if not whole or spent < _LEAST_SHARE * whole:
        return []
    lines = source_locations.by_line(kernels, source_locations.GPU_TIME)
    more = f" and {len(lines) - 1} more lines" if len(lines) > 1 else ""
    place = source_locations.location_text(profile, lines[0].frame)
    names = {profile.frame(node).name for node in kernels.nodes().tolist()}
    return [
        Finding(
            id="far_from_peak",
            severity=Severity.of_share(spent / whole),
            title=(
                f"products whose sizes are no multiples of 16 bytes take {spent / whole:.0%} of the GPU's "
                f"time, at {place}{more}"
            ),
            nodes=tuple(node for each in lines for node in each.nodes)[:8],
            evidence={
                "gpu_time_ns": spent,
                "time_share": spent / whole,
                "kernels": len(names),
                "kernel": source_locations.kernel_name(min(names)),
            },
            gain=source_locations.bound(
                profile,
                source_locations.GPU_TIME,
                spent,
                "the products cost nothing; with aligned sizes they take a sixth of the time or less",
            ),
            advice=(
                "pad the sizes of these matrices to multiples of 8 elements of 16 bits (best of 64): a "
                "vocabulary of 50,257 to 50,304, the classes of a head, the features of an input"
            ),
            misleads="sizes are aligned, but the tensors begin at an address that is not (a view)",
        )
    ]
