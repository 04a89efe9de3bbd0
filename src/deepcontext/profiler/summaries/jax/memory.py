"""What JAX's arrays held, and what its compiled programs need while they run, as tables.

Reads the section "jax" and the metrics `jax_peak_bytes` and `jax_live_bytes`; nothing is formatted or
printed. Arrays were looked at from time to time: what lives between two looks only is not seen.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from deepcontext.profiler.summaries.jax import operations as jax_operations
from deepcontext.profiler.summaries.jax.programs import section
from deepcontext.profiler.summaries.lines import by_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.groups import GroupTable

PEAK: Final = "jax_peak_bytes"


@dataclass(frozen=True, slots=True)
class ArrayMemory:
    """Memory of the arrays that the program held.

    Attributes:
        looks: moments looked at.
        live_arrays: number of arrays at the last of them.
        live_bytes: their size.
        peak_bytes: the most of all looks.
        unknown_peak_bytes: of that, of arrays that nobody saw made, as those of before the session.
        device_peak_bytes: by device, the peak that its allocator tells, with the programs at work.
    """

    looks: int
    live_arrays: int
    live_bytes: int
    peak_bytes: int
    unknown_peak_bytes: int
    device_peak_bytes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProgramMemory:
    """What one run of a compiled program needs on each device, from the compiler's own statistics.

    Attributes:
        program: name of the compiled module, with the types of its arguments where there are several.
        argument_bytes: of its arguments.
        output_bytes: of its results.
        alias_bytes: of the results, those that take the place of donated arguments.
        temp_bytes: between the two, given back at the end.
        generated_code_bytes: of the program itself; 0 on the CPU.
        fed_back_share: of the launches looked at, those that were given a result of an earlier
            launch from the same line, as in ``state = step(state)``; 0 to 1.
    """

    program: str
    argument_bytes: int
    output_bytes: int
    alias_bytes: int
    temp_bytes: int
    generated_code_bytes: int
    fed_back_share: float

    @property
    def run_bytes(self) -> int:
        """All that is in use while it runs."""
        return self.argument_bytes + self.output_bytes - self.alias_bytes + self.temp_bytes


def array_memory(profile: Profile) -> ArrayMemory | None:
    """Return what arrays held; None where that was not looked at."""
    counts = (section(profile) or {}).get("buffers")
    if not counts or not counts["looks"]:
        return None
    unknown = int(profile.exclusive(PEAK)[0]) if PEAK in profile.metrics else 0
    return ArrayMemory(
        looks=counts["looks"],
        live_arrays=counts["live_arrays"],
        live_bytes=counts["live_bytes"],
        peak_bytes=counts["peak_bytes"],
        unknown_peak_bytes=unknown,
        device_peak_bytes=counts["device_peak_bytes"],
    )


def program_memory(profile: Profile) -> tuple[ProgramMemory, ...]:
    """List compiled programs, those that need most first; without those the compiler says nothing of."""
    content = section(profile) or {}
    programs = content.get("programs", ())
    fed_back = _fed_back_shares(content)
    namesakes = Counter(program["module"] for program in programs)
    listed = [
        ProgramMemory(
            program=jax_operations.label(program, is_only=namesakes[program["module"]] == 1),
            **program["memory"],
            fed_back_share=fed_back.get(plain_name(program["module"]), 0.0),
        )
        for program in programs
        if program.get("memory")
    ]
    return tuple(sorted(listed, key=lambda program: -program.run_bytes))


def plain_name(name: str) -> str:
    """Return what ``jit(step)`` and the compiler's name for it, ``jit_step``, have in common."""
    return re.sub(r"[\W_]", "", name)


def _fed_back_shares(content: Mapping[str, Any]) -> dict[str, float]:
    """Return the share of launches by the plain name of the function."""
    counts: dict[str, list[int]] = {}
    for function, launches, fed_back in content.get("fed_back", ()):
        sums = counts.setdefault(plain_name(f"jit({function})"), [0, 0])
        sums[0] += launches
        sums[1] += fed_back
    return {name: fed / launches for name, (launches, fed) in counts.items() if launches}


def held_at_peak(profile: Profile, limit: int = 0) -> GroupTable | None:
    """Return the lines of the user's own code by what they held at the peak, None for no memory."""
    if PEAK not in profile.metrics:
        return None
    return by_line(profile, PEAK, limit, largest="exclusive")
