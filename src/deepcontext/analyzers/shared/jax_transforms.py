"""Complex Fourier transforms of real signals of whose result only the real part is used.

`rfft` and `irfft` compute the same with half the numbers. Recognised by a conversion from real to complex
before a transform, and the real part after a transform, in one function under `jit`. Does not judge functions
that also use the imaginary part.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.jax_calls import at_line
from deepcontext.profiler.format.metric import DEVICE_TIME_NS, PROGRAM_LAUNCH_COUNT
from deepcontext.profiler.model.metric_values import exclusive_or_zeros, inclusive_or_zeros
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.jax import operations as jax_operations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.jax.operations import Operation

_COMPLEX: Final = ("c64", "c128")
_TRANSFORM: Final = "fft"
_BACKWARD: Final = "backward"
# Source: jax/_src/lax/fft.py, the jitted function `fft` converts what is not complex.
_WITHIN: Final = "jit(fft)"
_CONVERSION: Final = "/convert_element_type"
# The transform of real signals reads and writes half the numbers.
_SAVED: Final = 0.5
_LEAST_SHARE: Final = 0.1
_LEAST_LAUNCHES: Final = 5


def complex_transforms(profile: Profile) -> list[Finding]:
    """Return a finding for each function with complex transforms of real signals that take much time."""
    whole = source_locations.judged_total(profile, DEVICE_TIME_NS.name)
    if not whole or not source_locations.has_jax(profile):
        return []
    functions: dict[tuple[str, str, str], list[Operation]] = defaultdict(list)
    operations = jax_operations.operations(profile)
    for each in operations:
        if each.source.file and each.type in _COMPLEX:
            functions[each.program, each.source.file, each.source.function].append(each)
    used: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for each in operations:
        for member in each.members:
            if member.phase != _BACKWARD:
                place = (each.program, member.source.file, member.source.function)
                used[place].add(member.primitive)
        if not each.members and each.phase != _BACKWARD:
            used[each.program, each.source.file, each.source.function].add(each.opcode)
    return [
        finding
        for place, computed in functions.items()
        if "real" in used[place] and "imag" not in used[place]
        for finding in _of_function(profile, computed, whole)
    ]


def _of_function(profile: Profile, computed: Sequence[Operation], whole: int) -> list[Finding]:
    """Return the finding about complex operations of one function of one program, if it is one."""
    transforms = [each for each in computed if each.opcode == _TRANSFORM]
    forward = [each for each in transforms if each.phase != _BACKWARD]
    signals = [each for each in computed if _is_of_real(each)]
    spent = sum(each.device_ns for each in computed)
    converting = sum(each.device_ns for each in signals)
    # Those that are not of real signals transform back.
    if not signals or len(forward) <= len(signals) or spent < _LEAST_SHARE * whole:
        return []
    source = signals[0].source
    nodes = np.flatnonzero(at_line(profile, source.file, source.line))
    launches = exclusive_or_zeros(profile, PROGRAM_LAUNCH_COUNT.name)
    calls = profile.tree.nearest(launches > 0)[nodes]
    if launches[np.unique(calls[calls != NO_NODE])].sum() < _LEAST_LAUNCHES:
        return []
    nodes = nodes[np.argsort(-inclusive_or_zeros(profile, DEVICE_TIME_NS.name)[nodes])]
    where = source_locations.location_text(profile, profile.frame(int(nodes[0])))
    return [
        Finding(
            id="jax_fusion",
            severity=Severity.of_share(spent / whole),
            title=(
                f"{where} transforms real signals as complex numbers, and only the real part of what is "
                f"transformed back is used: {spent / whole:.0%} of the device time"
            ),
            nodes=tuple(nodes.tolist())[:8],
            evidence={
                "device_time_ns": spent,
                "time_share": spent / whole,
                "transforms_count": len(transforms),
            },
            gain=source_locations.bound(
                profile,
                DEVICE_TIME_NS.name,
                converting + round(_SAVED * (spent - converting)),
                "nothing is converted, and half the complex numbers are computed",
            ),
            advice=(
                "use jnp.fft.rfft and jnp.fft.irfft(..., n) (rfft2, rfftn), which keep half of the "
                "spectrum, because the other half repeats it; a filter's spectrum needs the same half"
            ),
            misleads=(
                "a spectrum is multiplied by one that belongs to no real signal, so that the result is "
                "complex and .real drops a part"
            ),
        )
    ]


def _is_of_real(operation: Operation) -> bool:
    """Return whether an operation is the conversion that `jnp.fft` makes of real numbers."""
    return (
        _WITHIN in operation.op_name
        and operation.op_name.endswith(_CONVERSION)
        and operation.phase != _BACKWARD
    )
