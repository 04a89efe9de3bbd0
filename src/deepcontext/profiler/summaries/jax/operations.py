"""Executed operations of compiled JAX programs: members, time and cost.

Reads the section "jax" that the collector wrote; nothing is formatted or printed. Invariant: the
`device_ns` of all operations of a profile sum to its `device_time_ns`, up to rounding.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from deepcontext.profiler.format.user_code import is_user_file
from deepcontext.profiler.model.place import Place
from deepcontext.profiler.summaries.jax.programs import section

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

_NOWHERE = Place("", "", 0)
# Matrix products and convolutions, by JAX's names and the compiler's.
_DENSE = frozenset({"dot_general", "conv_general_dilated", "dot", "convolution"})


@dataclass(frozen=True, slots=True)
class Member:
    """One operation of a fusion."""

    primitive: str
    phase: str
    source: Place
    flops: int


@dataclass(frozen=True, slots=True)
class Operation:
    """One instruction of a compiled program, over all call sites of the program.

    Attributes:
        program: name of the compiled module, with the argument types where several modules have the
            name.
        name: name of the instruction.
        opcode: the compiler's name for the kind of instruction: "dot", "fusion".
        phase: "forward", "backward", "recompute" or "none"; for a fusion, the phase of the whole.
        source: innermost line of the user's code; `file` is "" where there is no such line.
        members: operations of a fusion, in the compiler's order; empty for other instructions.
        source_lines: number of distinct lines of the user's code among the members.
        device_ns: time over the run, without nested operations (a loop's body).
        executions: number of executions.
        is_estimated: `executions` is an estimate: a loop or branch was seen in some launches only.
        flops: per execution, from the shapes; 0 where they are unknown (custom calls).
        bytes: bytes moved per execution: operands and result.
        shape: of the result, "f32[8,4]"; "" where not known.
        op_name: JAX's name with the transformations around it, "jit(f)/vmap(jvp())/mul".
    """

    program: str
    name: str
    opcode: str
    phase: str
    source: Place
    members: tuple[Member, ...]
    source_lines: int
    device_ns: int
    executions: int
    flops: int
    bytes: int
    shape: str = ""
    op_name: str = ""
    is_estimated: bool = False

    @property
    def type(self) -> str:
        """Element type of the result, of the first part of a tuple; "" where not known."""
        return self.shape.lstrip("(").partition("[")[0]

    @property
    def is_dense(self) -> bool:
        """Whether the operation is or contains a matrix product or a convolution."""
        return self.opcode in _DENSE or any(each.primitive in _DENSE for each in self.members)

    @property
    def intensity(self) -> float:
        """Arithmetic intensity in flop per byte."""
        return self.flops / self.bytes if self.bytes else 0.0

    @property
    def flops_per_second(self) -> float:
        """Attained rate; 0 where no time was measured."""
        return self._rate(self.flops)

    @property
    def bytes_per_second(self) -> float:
        """Attained rate; 0 where no time was measured."""
        return self._rate(self.bytes)

    def _rate(self, amount: int) -> float:
        return amount * self.executions / self.device_ns * 1e9 if self.device_ns else 0.0


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a call of a compiled program passes.

    Attributes:
        program: name of the compiled module, as for `Operation`.
        count: number of arrays, of all arguments.
        size_bytes: their size together.
    """

    program: str
    count: int
    size_bytes: int


def operations(profile: Profile) -> tuple[Operation, ...]:
    """List the executed operations, slowest first."""
    content = section(profile) or {}
    time_of = {
        (program, index): (executions, device_ns)
        for program, index, executions, device_ns in content.get("times", ())
    }
    estimated = {(program, index) for program, index in content.get("estimated", ())}
    programs = content.get("programs", ())
    namesakes = Counter(program["module"] for program in programs)
    found = []
    for program in programs:
        name = label(program, is_only=namesakes[program["module"]] == 1)
        lines = [Place(*line) for line in program["lines"]]
        found += [
            replace(
                _operation(operation, name, lines, time_of[program["uid"], index]),
                is_estimated=(program["uid"], index) in estimated,
            )
            for index, operation in enumerate(program["operations"])
            if (program["uid"], index) in time_of
        ]
    return tuple(sorted(found, key=lambda operation: -operation.device_ns))


def by_program(profile: Profile) -> dict[str, list[Operation]]:
    """Return the executed operations of each program, slowest first."""
    found: dict[str, list[Operation]] = {}
    for each in operations(profile):
        found.setdefault(each.program, []).append(each)
    return found


def arguments(profile: Profile) -> tuple[Arguments, ...]:
    """List what a call of each program passes; empty for profiles from before this was recorded."""
    programs = (section(profile) or {}).get("programs", ())
    namesakes = Counter(program["module"] for program in programs)
    return tuple(
        Arguments(
            label(program, is_only=namesakes[program["module"]] == 1),
            program["arguments"],
            program["argument_bytes"],
        )
        for program in programs
        if "arguments" in program
    )


def fusions(profile: Profile, *, several_lines: bool = False) -> tuple[Operation, ...]:
    """List the executed fusions, slowest first; `several_lines`: only fusions of several lines."""
    return tuple(
        operation
        for operation in operations(profile)
        if operation.members and (operation.source_lines > 1 or not several_lines)
    )


def label(program: dict[str, Any], *, is_only: bool) -> str:
    """Return the module's name, with the argument types unless the name is unique (`is_only`)."""
    module = str(program["module"])
    return module if is_only else module + (program.get("label") or f"#{program['uid']}")


def _operation(
    content: dict[str, Any], program: str, lines: list[Place], time: tuple[int, int]
) -> Operation:
    members = tuple(
        Member(
            member["primitive"],
            member["phase"],
            lines[member["source"]] if member["source"] >= 0 else _NOWHERE,
            member["flops"],
        )
        for member in content["members"]
    )
    user_lines = [lines[each] for each in content["lines"] if is_user_file(lines[each].file)]
    places = {(m.source.file, m.source.line) for m in members if is_user_file(m.source.file)}
    return Operation(
        program=program,
        name=content["name"],
        opcode=content["opcode"],
        phase=content["phase"],
        source=user_lines[-1] if user_lines else _NOWHERE,
        members=members,
        source_lines=len(places),
        device_ns=time[1],
        executions=time[0],
        flops=content["flops"],
        bytes=content["bytes"],
        shape=str(content.get("shape", "")),
        op_name=str(content.get("op_name", "")),
    )
