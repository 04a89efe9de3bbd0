"""Large arrays that jitted functions capture, which become constants of the compiled programs.

The compiler copies constants, looks for equal ones, and computes ahead whatever depends on nothing else.
Masks and tables that a function makes itself are no constants, because the compiler leaves large ones to
the run. Profiles from before the size of constants was recorded give no finding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared.jax_calls import calls_of, function_of
from deepcontext.analyzers.shared.processor_time import processor_share
from deepcontext.profiler.summaries.jax import programs as jax_programs
from deepcontext.profiler.summaries.jax.memory import plain_name

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

# Source: measured, jax 0.10.2 on a processor, constants of 16 and 64 MB: 12 to 16 ns of processor time a byte
# for lowering and compiling, 64 to 70 where the function first centres and scales the array.
_NS_PER_BYTE: Final = 12
_LEAST_NS: Final = 200_000_000
_LEAST_SHARE: Final = 0.05


def captured_arrays(profile: Profile) -> list[Finding]:
    """Return a finding for each jitted function whose constants make compiling long, largest first."""
    content = jax_programs.section(profile) or {}
    elapsed = profile.run.wall_ns * processor_share(profile)
    sizes: dict[str, int] = {}
    for program in content.get("programs", ()):
        name = str(program["module"])
        sizes[name] = sizes.get(name, 0) + int(program.get("constant_bytes", 0))
    compiling = {
        plain_name(f"jit({each['function']})"): int(each["compile_ns"])
        for each in content.get("functions", ())
    }
    return [
        _finding(profile, name, size, compiling.get(function_of(name), 0))
        for name, size in sorted(sizes.items(), key=lambda each: -each[1])
        if _NS_PER_BYTE * size >= max(_LEAST_NS, _LEAST_SHARE * elapsed)
    ]


def _finding(profile: Profile, module: str, size: int, compile_ns: int) -> Finding:
    share = min(compile_ns / max(profile.run.wall_ns, 1), 1.0)
    return Finding(
        id="recompilation",
        severity=Severity.of_share(share),
        title=(
            f"{module} has {size / 1e6:,.0f} MB of constants, which are arrays that the function captures, "
            f"and compiling it took {share:.0%} of the elapsed time"
        ),
        nodes=tuple(calls_of(profile, module)[:8]),
        evidence={"constant_bytes": size, "compile_ns": compile_ns, "compile_share": share},
        gain=Gain("elapsed time", compile_ns, share, "nothing is compiled"),
        advice=(
            "pass large arrays to the jitted function as arguments instead of using them from outside of it "
            "(a global, an attribute, a closure): the compiler copies constants, and computes with them ahead"
        ),
        misleads="the program is compiled once and runs for hours, and memory for a second copy is there",
    )
