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


def module(name: str, instructions: Sequence[Instruction]) -> bytes:
    """Return a module whose one computation has these instructions; the last is its root."""
    body = b"".join(
        _field(2, _instruction(position, instruction))
        for position, instruction in enumerate(instructions)
    )
    computation = body + _field(5, 1) + _field(6, len(instructions))
    return _field(1, name) + _field(3, computation) + _field(5, 1) + _field(6, 1)


def adding(name: str, operations: int) -> bytes:
    """Return a module of a parameter and this many additions."""
    added = [
        Instruction(f"add.{i}", operands=(i, i), op_name=f"jit({name})/add{i}")
        for i in range(operations)
    ]
    return module(name, [Instruction("x", "parameter"), *added])


def _instruction(position: int, instruction: Instruction) -> bytes:
    dimensions = b"".join(_varint(size) for size in instruction.dimensions)
    shape = _field(2, instruction.element_type) + _field(3, dimensions)
    parts = [_field(1, instruction.name), _field(2, instruction.opcode), _field(3, shape)]
    if instruction.op_name:
        parts.append(_field(7, _field(2, instruction.op_name)))
    parts.append(_field(35, position + 1))
    parts += [_field(36, operand + 1) for operand in instruction.operands]
    return b"".join(parts)


def _field(number: int, value: int | str | bytes) -> bytes:
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
