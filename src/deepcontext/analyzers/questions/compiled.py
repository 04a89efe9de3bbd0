"""Is the same function compiled again and again, in pieces, or as a loop unrolled?"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepcontext.analyzers.causes import ELAPSED, Cause
from deepcontext.analyzers.finding import Severity
from deepcontext.analyzers.shared import source_locations as at
from deepcontext.analyzers.shared.jax_calls import calls_of, function_of
from deepcontext.analyzers.shared.places import query_of
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import HOST_TIME_NS
from deepcontext.profiler.format.user_code import is_user_file
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.jax import operations as jax_operations
from deepcontext.profiler.summaries.jax import programs as jax_programs
from deepcontext.profiler.summaries.jax.programs import plain_name
from deepcontext.profiler.summaries.lines import nearest_user
from deepcontext.profiler.summaries.setup_time import setup_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from deepcontext.profiler.model.place import Place
    from deepcontext.profiler.model.profile import Profile


# torch's name for the n-th compilation of the m-th piece of code.
_REGION: Final = re.compile(r"Torch-Compiled Region: (?:\d+/)?(\d+)/(\d+)$")
# The first change of a size makes this size dynamic, as torch.compile intends.
_FEWEST_AGAIN: Final = 2
_MANY_AGAIN: Final = 4
_LEAST_SHARE: Final = 0.05
# The weights of a model have a few shapes, and functions of JAX create each weight.
_FEWEST_OF_LIBRARY: Final = 8
_STATIC: Final = "static argument"
# A change of an argument's shape alone: "argument 'x' changed from f32[8,4] to f32[6,4]".
_OTHER_SHAPE: Final = re.compile(r"argument .* changed from (\w+)\[[\d,]*\] to \1\[[\d,]*\]")
# Unrolled loops: time of compiling; passes; layers, each with a product of its own; share of the elapsed
# time.
_LEAST_NS: Final = 200_000_000
_FEWEST_PASSES: Final = 64
_FEWEST_LAYERS: Final = 2
_LEAST_UNROLLED_SHARE: Final = 0.15
# A function that is compiled more often has that as its fault.
_MOST_COMPILATIONS: Final = 2
# Place: jax/_src/prng.py. A draw of random numbers is made of dozens of operations.
_DRAWS: Final = frozenset({"iota_2x32_shape", "threefry2x32", "random_bits", "rng_bit_generator"})


def find(profile: Profile) -> Iterator[Cause]:
    """Return what is compiled more often, or for longer, than needed."""
    yield from _regions_again(profile)
    yield from _breaks(profile)
    if at.has_jax(profile):
        yield from _programs_again(profile)
        yield from _unrolled(profile)


def _regions(profile: Profile) -> dict[int, dict[int, list[int]]]:
    """Return nodes by piece of code and number of its compilation."""
    found: dict[int, dict[int, list[int]]] = {}
    for node in at.nodes_named(profile, FrameKind.OPERATOR, _is_region).nodes().tolist():
        if match := _REGION.match(profile.frame(node).name):
            found.setdefault(int(match[1]), {}).setdefault(int(match[2]), []).append(node)
    return found


def _is_region(name: str) -> bool:
    return _REGION.match(name) is not None


def _regions_again(profile: Profile) -> Iterator[Cause]:
    time = setup_time(profile)
    is_known = time is not None and time.compiling_ns > 0 and profile.run.wall_ns > 0
    for versions in _regions(profile).values():
        again = max(versions)
        if again < _FEWEST_AGAIN:
            continue
        nodes = [node for each in sorted(versions) for node in versions[each]]
        yield Cause(
            key="compiled_again",
            nodes=nodes,
            frame=_line(profile, nodes),
            metric=ELAPSED if is_known else "",
            value=time.compiling_ns if time is not None and is_known else 0,
            whole=profile.run.wall_ns,
            severity=Severity.HIGH if again >= _MANY_AGAIN else Severity.WARNING,
            words={"times": again + 1},
            evidence={"recompilations_count": again},
        )


def _line(profile: Profile, nodes: Sequence[int]) -> Frame | None:
    return at.by_line(query_of(profile, nodes), HOST_TIME_NS.name)[0].frame


def _breaks(profile: Profile) -> Iterator[Cause]:
    """Find compiled regions that run below another region, because they follow a graph break."""
    regions = _regions(profile).values()
    mask = query_of(
        profile, [n for each in regions for nodes in each.values() for n in nodes]
    ).mask()
    # The path on which a CUDA graph was captured is repeated below its replay.
    replayed = profile.tree.below(profile.is_kind(FrameKind.GRAPH))
    inner = (mask & profile.tree.below(mask) & ~replayed).nonzero()[0]
    # Each piece is below the previous piece, so lines are collected for each node separately.
    lines: dict[tuple[str, int], list[int]] = {}
    owners = nearest_user(profile)[inner]
    for node, owner in zip(inner.tolist(), owners.tolist(), strict=True):
        if owner != NO_NODE:
            frame = profile.frame(owner)
            lines.setdefault((frame.file, frame.line), []).append(node)
    for nodes in lines.values():
        (location, *_) = at.by_line(query_of(profile, nodes), HOST_TIME_NS.name)
        yield Cause(
            key="graph_breaks",
            nodes=location.nodes,
            frame=location.frame,
            evidence={"calls_count": location.count},
        )


def _programs_again(profile: Profile) -> Iterator[Cause]:
    groups: dict[tuple[str, object], list[jax_programs.Recompilation]] = {}
    for row in jax_programs.recompilations(profile):
        groups.setdefault((row.function, row.path[-1:]), []).append(row)
    for rows in groups.values():
        spent, again = sum(row.spent_ns for row in rows), sum(row.count for row in rows)
        is_set_up = not rows[0].is_of_user and again < _FEWEST_OF_LIBRARY
        if spent < _LEAST_SHARE * profile.run.wall_ns or not spent or is_set_up:
            continue
        changes = [change for row in rows for change in row.changes]
        # Programs have a second shape for a reason: a last batch, an evaluation, a longer input.
        shapes = bool(changes) and all(_OTHER_SHAPE.fullmatch(change) for change in changes)
        place = rows[0].path[-1] if rows[0].path else None
        yield Cause(
            key=_entry(rows),
            nodes=_calls(profile, rows[0].function, place),
            frame=_frame(place) if place else None,
            metric=ELAPSED,
            value=spent,
            whole=profile.run.wall_ns,
            severity=Severity.INFO if again == 1 and shapes else None,
            words={
                "function": rows[0].function,
                "times": "once" if again == 1 else f"{again} times",
            },
            evidence={
                "recompilations_count": again,
                "reason": ", ".join(sorted({row.reason for row in rows})),
                "changes": "; ".join(dict.fromkeys(c for row in rows[:3] for c in row.changes[:1])),
            },
        )


def _frame(place: Place) -> Frame:
    return Frame(FrameKind.PYTHON, place.function, place.file, place.line)


def _entry(rows: list[jax_programs.Recompilation]) -> str:
    """Return the entry that says what to do about the reasons of compilations."""
    reasons = {row.reason for row in rows}
    if "cache" in reasons:
        return "program_evicted_and_compiled_again"
    if reasons == {"new object"}:
        return "new_function_compiled_each_time"
    if not rows[0].is_of_user:
        return "operations_compiled_for_each_shape"
    is_static = all(change.startswith(_STATIC) for row in rows for change in row.changes)
    return "static_argument_compiled_again" if is_static else "program_compiled_again"


def _calls(profile: Profile, function: str, place: Place | None) -> list[int]:
    """Return the calls of a jitted function, only calls from the line `place` if there are any."""
    names = {f"jit({function})", function}
    nodes: list[int] = at.nodes_named(profile, FrameKind.OPERATOR, names).nodes().tolist()
    frames = [(node, at.frame_of(profile, node)) for node in nodes]
    there = [
        node
        for node, frame in frames
        if frame and place and (frame.file, frame.line) == (place.file, place.line)
    ]
    return there or nodes


def _compiling(content: Mapping[str, object]) -> dict[str, dict[str, int]]:
    """Return what was recorded of the compilations of each function, by its plain name."""
    rows = content.get("functions", ())
    assert isinstance(rows, list | tuple)  # noqa: S101  what the section's reader returns
    return {plain_name(f"jit({each['function']})"): each for each in rows}


@dataclass(frozen=True, slots=True)
class Unrolled:
    """A compiled program that repeats one line of the user's code.

    Attributes:
        module: the compiler's name of the program.
        source: the line.
        repeated: how often the program has the most frequent operation of the line, at most.
        compile_ns: time of compiling the function.
        is_net: whether the passes may be layers, each with products of its own weights.
    """

    module: str
    source: Place
    repeated: int
    compile_ns: int
    is_net: bool


def unrolled_programs(profile: Profile) -> list[Unrolled]:
    """Return the programs that repeat a line many times and took long to compile, costliest first."""
    content = jax_programs.section(profile) if at.has_jax(profile) else None
    compiling = {
        name: each
        for name, each in _compiling(content or {}).items()
        if each["compile_ns"] >= _LEAST_NS and each["compilations"] <= _MOST_COMPILATIONS
    }
    if not compiling:
        return []
    found = []
    for program, operations in jax_operations.by_program(profile).items():
        if function_of(program) not in compiling:
            continue
        for member, count in _of_loops(operations).most_common(1):
            if count < _FEWEST_PASSES:
                continue
            products = max(_products(operations), default=0)
            found.append(
                Unrolled(
                    program,
                    member[2],
                    count,
                    int(compiling[function_of(program)]["compile_ns"]),
                    _FEWEST_LAYERS <= products < _FEWEST_PASSES,
                )
            )
    return sorted(found, key=lambda each: -each.compile_ns)


def _of_loops(operations: Sequence[jax_operations.Operation]) -> Counter[tuple[str, str, Place]]:
    """Return how often a program has each operation of lines that may be a loop's body: no draws."""
    lines = Counter(
        (member.primitive, member.phase, member.source)
        for operation in operations
        for member in operation.members
        if member.source.line and is_user_file(member.source.file)
    )
    draws = {source for primitive, _, source in lines if primitive in _DRAWS}
    return Counter({key: count for key, count in lines.items() if key[2] not in draws})


def _products(operations: Sequence[jax_operations.Operation]) -> list[int]:
    """Return how many passes need the product of each line; a backward has two for each."""
    counted = Counter(
        (each.phase, each.source)
        for each in operations
        if each.is_dense and is_user_file(each.source.file)
    )
    return [-(-n // 2) if phase == "backward" else n for (phase, _), n in counted.items()]


def _unrolled(profile: Profile) -> Iterator[Cause]:
    elapsed = profile.run.wall_ns
    for each in unrolled_programs(profile):
        if each.compile_ns < _LEAST_UNROLLED_SHARE * elapsed or not elapsed:
            continue
        # Layers have to compute one after the other, and compile once.
        yield Cause(
            key="loop_unrolled_into_program",
            nodes=calls_of(profile, each.module),
            frame=_frame(each.source),
            metric=ELAPSED,
            value=each.compile_ns,
            whole=elapsed,
            severity=Severity.INFO if each.is_net else None,
            words={"module": each.module, "times": each.repeated},
            evidence={"repeated_count": each.repeated},
        )
