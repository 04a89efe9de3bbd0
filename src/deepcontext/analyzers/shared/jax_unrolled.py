"""Python loops under `jit`, which tracing unrolls into one large program that takes long to compile.

Recognised by one line of the user's code that the program repeats many times. The compiler copies cheap
operations into several fusions, so that the number of copies is an upper bound of the passes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.jax_calls import calls_of, function_of
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.model.source import is_user_file
from deepcontext.profiler.summaries.jax import operations as jax_operations
from deepcontext.profiler.summaries.jax import programs as jax_programs
from deepcontext.profiler.summaries.jax.memory import plain_name

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_LEAST_REPEATED: Final = 64
_LEAST_LAYERS: Final = 2
# Arguments by operations of the line: the compiler may make two of one pass.
_LEAST_OF_ARGUMENTS: Final = 0.5
_LEAST_SHARE: Final = 0.15
_LEAST_COMPILING_NS: Final = 200_000_000
# A function that is compiled more often has that as its fault.
_MOST_COMPILATIONS: Final = 2


@dataclass(frozen=True, slots=True)
class Unrolled:
    """A compiled program that repeats one line of the user's code.

    Attributes:
        module: the compiler's name of the program.
        source: the line.
        repeated: how often the program has the most frequent operation of the line, at most.
        products: how often it has the most frequent product of one line, a backward's two as one.
        compile_ns: time of compiling the function.
        operations: how many of its operations have that most frequent operation among their members.
        arguments: how many arrays a call passes; 0 where that was not recorded.
    """

    module: str
    source: jax_programs.Source
    repeated: int
    products: int
    compile_ns: int
    operations: int
    arguments: int

    @property
    def is_net(self) -> bool:
        """Whether the passes may be layers, each with products of its own weights."""
        return _LEAST_LAYERS <= self.products < _LEAST_REPEATED

    @property
    def is_of_arguments(self) -> bool:
        """Whether each pass may work on an argument of its own, such as one of many weights."""
        least = max(_LEAST_REPEATED, _LEAST_OF_ARGUMENTS * self.operations)
        return self.arguments >= least


def unrolled_programs(profile: Profile) -> list[Unrolled]:
    """Return the programs that repeat a line many times and took long to compile, costliest first."""
    content = jax_programs.section(profile) if source_locations.has_jax(profile) else None
    compiling = {
        plain_name(f"jit({each['function']})"): each
        for each in (content or {}).get("functions", ())
        if each["compile_ns"] >= _LEAST_COMPILING_NS and each["compilations"] <= _MOST_COMPILATIONS
    }
    if not compiling:
        return []
    arguments = {each.program: each.count for each in jax_operations.arguments(profile)}
    found = []
    for program, (counter, products) in _lines(profile, set(compiling)).items():
        for most_frequent, count in counter.most_common(1):
            source = most_frequent[2]
            if count >= _LEAST_REPEATED:
                spent = int(compiling[function_of(program)]["compile_ns"])
                most = max(map(_of_forward, products.items()), default=0)
                found.append(
                    Unrolled(
                        program,
                        source,
                        count,
                        most,
                        spent,
                        _operations_with(profile, program, most_frequent),
                        arguments.get(program, 0),
                    )
                )
    return sorted(found, key=lambda each: -each.compile_ns)


# Source: jax/_src/prng.py. A draw of random numbers is made of dozens of operations.
_DRAWS: Final = frozenset({"iota_2x32_shape", "threefry2x32", "random_bits", "rng_bit_generator"})

# What `for part in array` and `a, b = array` are made of: they compute nothing.
_UNPACKING: Final = frozenset({"slice", "dynamic_slice", "squeeze", "reshape", "broadcast_in_dim"})

_Lines: TypeAlias = Counter[tuple[str, str, jax_programs.Source]]


def _lines(profile: Profile, functions: set[str]) -> dict[str, tuple[_Lines, _Lines]]:
    """Return how often the programs of some functions have each operation of each line of the user.

    Returns:
        by program, all operations, and products only.
    """
    found: dict[str, tuple[_Lines, _Lines]] = {}
    for operation in jax_operations.operations(profile):
        if function_of(operation.program) not in functions:
            continue
        lines, products = found.setdefault(operation.program, (Counter(), Counter()))
        lines.update(
            (member.primitive, member.phase, member.source)
            for member in operation.members
            if member.source.line and is_user_file(member.source.file)
        )
        if operation.is_dense and is_user_file(operation.source.file):
            products["product", operation.phase, operation.source] += 1
    return {program: (_of_loops(lines), products) for program, (lines, products) in found.items()}


def _operations_with(
    profile: Profile, program: str, member: tuple[str, str, jax_programs.Source]
) -> int:
    """Return how many operations of a program have a member of a primitive, phase and line."""
    return sum(
        any((each.primitive, each.phase, each.source) == member for each in operation.members)
        for operation in jax_operations.operations(profile)
        if operation.program == program
    )


def _of_loops(lines: _Lines) -> _Lines:
    """Return the lines that may be a loop's body: neither draws nor lines that only unpack an array."""
    draws = {source for primitive, _, source in lines if primitive in _DRAWS}
    computing = {source for primitive, _, source in lines if primitive not in _UNPACKING}
    return Counter({key: count for key, count in lines.items() if key[2] in computing - draws})


def _of_forward(product: tuple[tuple[str, str, jax_programs.Source], int]) -> int:
    """Return how many passes need a product: the backward has one for the input and one for the weights."""
    (_, phase, _), count = product
    return -(-count // 2) if phase == "backward" else count


def unrolled_loops(profile: Profile) -> list[Finding]:
    """Return a finding for each unrolled program whose compiling took much of the elapsed time."""
    elapsed = profile.run.wall_ns
    return [
        _finding(profile, each, each.compile_ns / elapsed)
        for each in unrolled_programs(profile)
        if each.compile_ns >= _LEAST_SHARE * elapsed > 0
    ]


def _finding(profile: Profile, program: Unrolled, share: float) -> Finding:
    at = program.source
    frame = Frame(FrameKind.PYTHON, at.function, at.file, at.line)
    return Finding(
        id="kernel_fusion",
        # Layers have to compute one after the other, and compile once. Other reports say what many
        # arguments cost in each call.
        severity=Severity.INFO
        if program.is_net or program.is_of_arguments
        else Severity.of_share(share),
        title=(
            f"{program.module} repeats {source_locations.location_text(profile, frame)} up to "
            f"{program.repeated} times: a Python loop under jit is unrolled, and compiling it took "
            f"{share:.0%} of the elapsed time"
        ),
        nodes=tuple(calls_of(profile, program.module)[:8]),
        evidence={
            "compile_ns": program.compile_ns,
            "compile_share": share,
            "repeated_count": program.repeated,
            **({"arguments_count": program.arguments} if program.arguments else {}),
        },
        gain=Gain("elapsed time", program.compile_ns, min(share, 1.0), "nothing is compiled"),
        advice=(
            "keep values of one shape stacked in one array instead of in an argument each: the program then "
            "computes on all of them at once, or in a jax.lax.scan"
            if program.is_of_arguments
            else "write the loop as jax.lax.scan, or jax.lax.fori_loop: the program then has the body once, "
            "which compiles as fast for any number of passes"
        ),
        misleads=(
            "the program runs for so long that compiling it once does not matter; a scan with a small body "
            "computes more slowly than an unrolled loop on a device"
        ),
    )
