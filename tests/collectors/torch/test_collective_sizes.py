"""Bytes of collectives, joined with rows by number."""

from __future__ import annotations

from deepcontext.collectors.torch.collective_sizes import with_bytes

OPERATIONS = ("allreduce_", "_allgather_base_")
REDUCE, GATHER = ("all_reduce", 400), ("all_gather", 96)


def row(group: int, number: int, operation: int) -> tuple[int, ...]:
    return group, number, 0, operation, 10, 5, 0, -1


def sizes_of(rows: list[tuple[int, ...]]) -> list[int]:
    return [each[6] for each in rows]


def test_the_last_collectives_of_a_group_have_sizes() -> None:
    rows = [row(0, 0, 0), row(0, 8, 0), row(0, 9, 1), row(1, 0, 1)]
    found = with_bytes(
        rows, [("0", 10), ("1", 1)], OPERATIONS, {"0": [REDUCE, GATHER], "1": [GATHER]}
    )
    assert sizes_of(found) == [0, 400, 96, 96]
    assert [(*each[:6], 0, *each[7:]) for each in found] == rows


def test_what_torch_did_before_the_recording_is_left_out() -> None:
    earlier = [("all_reduce", 8)] * 5
    found = with_bytes([row(0, 0, 0)], [("0", 1)], OPERATIONS, {"0": [*earlier, REDUCE]})
    assert sizes_of(found) == [400]


def test_a_group_whose_operations_differ_has_no_sizes() -> None:
    rows = [row(0, 0, 0), row(0, 1, 1), row(1, 0, 0)]
    sizes = {"0": [REDUCE, REDUCE], "1": [REDUCE]}
    assert sizes_of(with_bytes(rows, [("0", 2), ("1", 1)], OPERATIONS, sizes)) == [0, 0, 400]


def test_without_sizes_nothing_is_known() -> None:
    assert sizes_of(with_bytes([row(0, 0, 0)], [("", 0)], OPERATIONS, {})) == [0]


def test_sizes_that_are_known_are_kept() -> None:
    known = (*row(0, 0, 0)[:6], 12, 7)
    assert with_bytes([known], [("0", 1)], OPERATIONS, {"0": [REDUCE]}) == [known]
