"""Compiled programs as XLA serialises them (HloModuleProto), made without XLA.

Field numbers: xla/service/hlo.proto and xla/xla_data.proto, as in `native/jax/hlo_module.cpp`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

F32 = 11  # xla.PrimitiveType


@dataclass(frozen=True, slots=True)
class Instruction:
    """One operation; `operands` are positions of earlier ones."""

    name: str
    opcode: str = "add"
    element_type: int = F32
    dimensions: tuple[int, ...] = (8,)
    operands: tuple[int, ...] = ()
    op_name: str = ""
    more: bytes = b""  # further fields


def module(name: str, *computations: Sequence[Instruction], more: bytes = b"") -> bytes:
    """Return a module of computations, numbered from 1; the first is the entry.

    The last instruction of a computation is its root. `more`: further fields of the module.
    """
    parts = [
        field(3, _computation(number, instructions))
        for number, instructions in enumerate(computations, 1)
    ]
    return field(1, name) + b"".join(parts) + field(5, 1) + field(6, 1) + more


def _computation(number: int, instructions: Sequence[Instruction]) -> bytes:
    body = b"".join(
        field(2, _instruction(position, instruction))
        for position, instruction in enumerate(instructions)
    )
    return body + field(5, number) + field(6, len(instructions))


def adding(name: str, operations: int) -> bytes:
    """Return a module of a parameter and this many additions."""
    added = [
        Instruction(f"add.{i}", operands=(i, i), op_name=f"jit({name})/add{i}")
        for i in range(operations)
    ]
    return module(name, [Instruction("x", "parameter"), *added])


def _instruction(position: int, instruction: Instruction) -> bytes:
    dimensions = numbers(*instruction.dimensions)
    shape = field(2, instruction.element_type) + field(3, dimensions)
    parts = [field(1, instruction.name), field(2, instruction.opcode), field(3, shape)]
    if instruction.op_name:
        parts.append(field(7, field(2, instruction.op_name)))
    parts.append(field(35, position + 1))
    parts += [field(36, operand + 1) for operand in instruction.operands]
    return b"".join([*parts, instruction.more])


def numbers(*values: int) -> bytes:
    """Return the content of a packed field."""
    return b"".join(_varint(value) for value in values)


def field(number: int, value: int | str | bytes) -> bytes:
    """Return a field of a message: a number, a text, or the bytes of a message."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
