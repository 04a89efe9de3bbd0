"""Limits of the reader of HLO: what a module past each of them loses, and that it does no harm."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from deepcontext import _native

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "fakes"))
from hlo import Instruction, field, module, numbers  # found through the line above

MOST_NESTING = 256
MOST_FUSIONS = 16
MOST_MEMBERS = 64
MOST_FRAMES = 512
MOST_SEARCH = 16


def _operations(*computations: list[Instruction], more: bytes = b"") -> list[dict[str, Any]]:
    program = _native.jax_read_program(module("limits", *computations, more=more), "", "", [])
    assert program is not None
    found: list[dict[str, Any]] = program["operations"]
    return found


def _calling(name: str, opcode: str, *computations: int) -> Instruction:
    return Instruction(name, opcode, more=field(38, numbers(*computations)))


@pytest.mark.long
def test_computations_that_run_each_other_very_deeply_are_cut_off() -> None:
    depth = 100_000
    computations = [[_calling(f"call.{number}", "call", number + 1)] for number in range(1, depth)]
    operations = _operations(*computations, [Instruction("add")])
    assert [operation["name"] for operation in operations] == [
        f"call.{number}" for number in range(1, MOST_NESTING + 1)
    ]
    assert operations[-1]["nested"] == []


def test_fusions_in_fusions_are_counted_once_each_and_as_often_as_they_run() -> None:
    width, depth = 8, MOST_FUSIONS - 2
    levels = [
        [
            Instruction("add"),
            *(_calling(f"fusion.{number}.{i}", "fusion", number + 1) for i in range(width)),
        ]
        for number in range(2, depth + 2)
    ]
    (fusion,) = _operations([_calling("fusion", "fusion", 2)], *levels, [Instruction("add")])
    assert fusion["flops"] == 8 * sum(width**level for level in range(depth + 1))


def test_a_computation_that_calls_itself_ends() -> None:
    for opcode in ("call", "fusion", "while"):
        body = [Instruction("add"), _calling("again", opcode, 2)]
        operations = _operations([_calling("first", opcode, 2)], body)
        assert operations[0]["flops"] == (8 if opcode == "fusion" else 0)


def test_a_fusion_lists_its_first_members_and_counts_all() -> None:
    body = [Instruction(f"add.{i}") for i in range(100)]
    (fusion,) = _operations([_calling("fusion", "fusion", 2, 2)], body)
    assert len(fusion["members"]) == MOST_MEMBERS
    assert fusion["flops"] == 2 * 100 * 8


def test_a_very_deep_stack_keeps_its_innermost_lines() -> None:
    depth = 600
    index = field(1, "f.py") + field(2, "f")
    for line in range(1, depth + 1):  # a location, and a frame that names its caller
        index += field(3, field(1, 1) + field(2, 1) + field(3, line))
        index += field(4, field(1, line) + field(2, line - 1))
    named = Instruction("add", more=field(7, field(2, "jit(f)/add") + field(15, depth)))
    (operation,) = _operations([named], more=field(17, index))
    lines = [line for _, _, line in operation["lines"]]
    assert lines == list(range(depth - MOST_FRAMES + 1, depth + 1))


def test_a_line_is_looked_for_through_so_many_producers() -> None:
    index = field(1, "f.py") + field(2, "f") + field(3, field(1, 1) + field(2, 1) + field(3, 7))
    index += field(4, field(1, 1))
    named = Instruction("add", more=field(7, field(2, "jit(f)/add") + field(15, 1)))
    copies = [
        Instruction(f"copy.{number}", "copy", operands=(number,))
        for number in range(MOST_SEARCH + 1)
    ]
    operations = _operations([named, *copies], more=field(17, index))
    assert [operation["origin"] for operation in operations] == [
        "own",
        *["producer"] * MOST_SEARCH,
        "none",
    ]


def test_a_tuple_in_tuples_ends_at_a_depth() -> None:
    shape = field(2, 11)
    for _ in range(10_000):
        shape = field(2, 13) + field(4, shape)
    (operation,) = _operations([Instruction("x", more=field(3, shape))])
    assert operation["shape"].count("(") == 32
    assert operation["bytes"] == 0
