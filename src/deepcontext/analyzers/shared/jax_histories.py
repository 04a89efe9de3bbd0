"""States that a scan of JAX stacks, one for each pass, and that the program only reduces to a few numbers.

Recognised by shapes: a loop writes a stack of arrays part by part, its program returns the stack, and every
other program that takes an array of that shape is a reduction. Nothing is found if an array of that size is
copied to the host or read there, or if a program takes arguments of that size whose shapes were not recorded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.jax_calls import calls_of
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.model.metric_values import exclusive_or_zeros
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.source import is_user_file
from deepcontext.profiler.summaries.jax import operations as jax_operations
from deepcontext.profiler.summaries.jax import programs as jax_programs

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_MIB: Final = 1 << 20
# A smaller stack is no problem.
_LEAST_BYTES: Final = 64 * _MIB
# Of the results and arguments of the program that makes the stack.
_LEAST_SHARE: Final = 0.5
# Of the stack, in the results of a program that reduces it.
_MOST_LEFT: Final = 0.05
# Source: jax/_src/numpy/reductions.py; each can be computed state by state.
# Bytes that a line copies to the host, or reads in host memory.
_COPIED: Final = "transfer_bytes"
_READ: Final = "read_bytes"
_REDUCTIONS: Final = re.compile(r"jit__?(?:mean|var|std|norm|reduce_(?:sum|max|min|prod|any|all))")
_ARRAY: Final = re.compile(r"[a-z]+(\d+)\[([\d,]+)\]")


@dataclass(frozen=True, slots=True)
class _Stack:
    """States that a loop stacks: the operation that writes them, and the bytes of all."""

    operation: jax_operations.Operation
    size_bytes: int


def unused_histories(profile: Profile) -> list[Finding]:
    """Return a finding for each stack of states of which the program needs sums or extremes only."""
    programs = (jax_programs.section(profile) or {}).get("programs", ())
    makers = {program["module"]: program for program in programs}
    found = []
    for stack in _stacks(profile):
        maker = makers.get(stack.operation.program)  # a maker with namesakes is not judged
        # Profiles without the number of arguments do not have what NumPy reads in host memory, either.
        if maker is None or "arguments" not in maker or maker["output_bytes"] < stack.size_bytes:
            continue
        share = stack.size_bytes / (maker["output_bytes"] + maker["argument_bytes"])
        readers = [each for each in programs if each is not maker and _may_read(each, stack)]
        if share < _LEAST_SHARE or not readers or _is_read(profile, stack.size_bytes):
            continue
        if all(_reduces(reader, stack) for reader in readers):
            names = [str(each["module"]) for each in readers]
            found.append(_finding(profile, stack, share, names))
    return found


def _stacks(profile: Profile) -> list[_Stack]:
    """Return the large stacks that loops write, one for each shape and program."""
    found: dict[tuple[str, str], _Stack] = {}
    for operation in jax_operations.operations(profile):
        match = _ARRAY.fullmatch(operation.shape)
        if (
            match is None
            or not operation.updates_in_place
            or "/while/body/" not in operation.op_name
        ):
            continue
        size = int(match[1]) // 8
        for length in match[2].split(","):
            size *= int(length)
        if size >= _LEAST_BYTES and is_user_file(operation.source.file):
            found.setdefault((operation.program, operation.shape), _Stack(operation, size))
    return list(found.values())


def _may_read(program: dict[str, Any], stack: _Stack) -> bool:
    """Return whether a program takes an array of the stack's shape, or arguments as large."""
    return stack.operation.shape in (program.get("label") or "") or (
        program["argument_bytes"] >= stack.size_bytes
    )


def _reduces(program: dict[str, Any], stack: _Stack) -> bool:
    """Return whether a program is a reduction of the stack to much less."""
    return (
        _REDUCTIONS.fullmatch(program["module"]) is not None
        and stack.operation.shape in (program.get("label") or "")
        and program["output_bytes"] <= _MOST_LEFT * stack.size_bytes
    )


def _is_read(profile: Profile, size_bytes: int) -> bool:
    """Return whether a line copies or reads an array of this size, or several that are as large together."""
    copying = source_locations.nodes_named(profile, FrameKind.COPY, {"jax: copy to host"}).mask()
    copied = np.where(copying, exclusive_or_zeros(profile, _COPIED), 0)
    return bool((np.maximum(copied, exclusive_or_zeros(profile, _READ)) >= size_bytes).any())


def _finding(profile: Profile, stack: _Stack, share: float, readers: list[str]) -> Finding:
    at = stack.operation.source
    where = source_locations.location_text(
        profile, Frame(FrameKind.PYTHON, at.function, at.file, at.line)
    )
    below = np.zeros(len(profile.tree), np.bool_)
    below[calls_of(profile, stack.operation.program)] = True
    named = source_locations.nodes_named(profile, FrameKind.HLO, {stack.operation.name})
    nodes = Query(profile, named.mask() & profile.tree.below(below)).nodes()
    return Finding(
        id="memory",
        severity=Severity.WARNING,
        title=(
            f"the loop at {where} stacks the states of all passes, {stack.size_bytes / 1e6:,.0f} MB, and the "
            "program only reduces them"
        ),
        nodes=tuple(nodes[:8].tolist()),
        evidence={
            "stacked_bytes": stack.size_bytes,
            "shape": stack.operation.shape,
            "readers": ", ".join(dict.fromkeys(readers)),
        },
        gain=Gain("memory_in_use_bytes", stack.size_bytes, share, "no state is kept"),
        advice=(
            "return from the body of jax.lax.scan what is needed of each state (its mean, its largest "
            "value), or keep the result so far in the carry, instead of the state itself"
        ),
        misleads=(
            "another array of the same shape is reduced; the stack is used in ways that launch no program "
            "and copy nothing, such as saving from the device"
        ),
    )
