"""Memory that JAX's arrays held, and memory that its compiled programs need while they run.

Reads the section "jax" and the metrics `jax_peak_bytes` and `jax_live_bytes`; nothing is formatted or
printed. Arrays were inspected from time to time: an array that lives only between two inspections is
missing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.summaries.jax import operations as jax_operations
from deepcontext.profiler.summaries.jax.programs import plain_name, section
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
        looks: number of inspections.
        live_arrays: number of arrays at the last inspection.
        live_bytes: size of these arrays.
        peak_bytes: largest size at any inspection.
        unknown_peak_bytes: part of `peak_bytes` in arrays whose creation was not recorded, for example
            arrays from before the session.
        device_peak_bytes: by device, the peak that the allocator reports, including memory of running
            programs.
    """

    looks: int
    live_arrays: int
    live_bytes: int
    peak_bytes: int
    unknown_peak_bytes: int
    device_peak_bytes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProgramMemory:
    """What one run of a compiled program needs on each device, from the compiler's statistics.

    Attributes:
        program: name of the compiled module, with the argument types where several modules have the name.
        argument_bytes: size of the arguments.
        output_bytes: size of the results.
        alias_bytes: part of the results that reuses the memory of donated arguments.
        temp_bytes: memory for intermediate values, freed at the end.
        generated_code_bytes: size of the program itself; 0 on the CPU.
        fed_back_share: share of the inspected launches that received a result of an earlier launch
            from the same line, as in ``state = step(state)``; 0 to 1.
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
        """Memory in use while the program runs."""
        return self.argument_bytes + self.output_bytes - self.alias_bytes + self.temp_bytes


def array_memory(profile: Profile) -> ArrayMemory | None:
    """Return the memory of arrays; None if arrays were not inspected."""
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
    """List compiled programs with statistics from the compiler, largest memory first."""
    content = section(profile) or {}
    programs = content.get("programs", ())
    fed_back = fed_back_shares(profile)
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


def fed_back_shares(profile: Profile) -> dict[str, float]:
    """Return the share of launches with a fed-back result, by plain name of the function."""
    content = section(profile) or {}
    counts: dict[str, list[int]] = {}
    for function, launches, fed_back in content.get("fed_back", ()):
        sums = counts.setdefault(plain_name(f"jit({function})"), [0, 0])
        sums[0] += launches
        sums[1] += fed_back
    return {name: fed / launches for name, (launches, fed) in counts.items() if launches}


def held_at_peak(profile: Profile, limit: int = 0) -> GroupTable | None:
    """Return the bytes that each line of the user's code held at the peak; None if not recorded."""
    if PEAK not in profile.metrics:
        return None
    return by_line(profile, PEAK, limit, largest="exclusive")
