"""Decoding of columns; nothing is allocated for impossible sizes."""

from __future__ import annotations

import tracemalloc
import zlib
from typing import Any

import numpy as np
import pytest

from deepcontext.profiler.format import schema, wire
from deepcontext.profiler.model.store.column import (
    DTYPES,
    MAX_EXPANSION,
    ColumnError,
    check_table,
    decode_column,
)
from deepcontext.profiler.model.store.messages import message_class
from deepcontext.profiler.model.tree import Tree

RAW, ZLIB = schema.ENCODINGS["RAW"], schema.ENCODINGS["ZLIB"]


def column(data: bytes, count: int, encoding: int, type_name: str = "INT64") -> Any:
    message: Any = message_class("Column")()
    message.type, message.count = schema.COLUMN_TYPES[type_name], count
    message.encoding, message.data = encoding, data
    return message


@pytest.mark.parametrize("type_name", schema.COLUMN_TYPES)
@pytest.mark.parametrize("count", [0, 1, 1000])
def test_what_the_encoder_writes_is_read_back(type_name: str, count: int) -> None:
    values = np.arange(count).astype(DTYPES[type_name])
    message = message_class("Column")(**wire.column(type_name, values.tobytes()))
    check_table({"total": message}, {"total": type_name}, count)
    decoded = decode_column("total", message)
    assert decoded.dtype == values.dtype
    assert decoded.tolist() == values.tolist()


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (column(bytes(7), 1, RAW), "7 bytes of data, expected 8"),
        (column(bytes(16), 1, RAW), "16 bytes of data, expected 8"),
        (column(zlib.compress(bytes(7)), 1, ZLIB), "7 bytes of data, expected 8"),
        (column(zlib.compress(bytes(9)), 1, ZLIB), "9 bytes of data, expected 8"),
        (column(zlib.compress(bytes(10)), 1, ZLIB), "does not end where 8 bytes end"),
        (column(zlib.compress(bytes(8))[:-1], 1, ZLIB), "does not end where 8 bytes end"),
        (column(zlib.compress(bytes(8)) + b"x", 1, ZLIB), "does not end where 8 bytes end"),
        (column(b"not zlib", 1, ZLIB), "the compressed data is damaged"),
        (column(b"", 0, ZLIB), "does not end where 0 bytes end"),
        (column(bytes(8), 1, 2), "unknown encoding 2"),
    ],
)
def test_data_that_differs_from_its_declaration_is_refused(message: Any, error: str) -> None:
    with pytest.raises(ColumnError, match=f"'total': .*{error}"):
        decode_column("total", message)


@pytest.mark.parametrize(
    ("message", "rows", "error"),
    [
        (column(bytes(8), 2, RAW), 1, "2 rows, expected 1"),
        (column(bytes(8), 1, RAW, "UINT64"), 1, "type UINT64, expected INT64"),
        (column(b"", 2**63, RAW), 2**63, f"more than {MAX_EXPANSION} times"),
    ],
)
def test_a_column_that_does_not_fit_its_table_is_refused(
    message: Any, rows: int, error: str
) -> None:
    with pytest.raises(ColumnError, match=error):
        check_table({"total": message}, {"total": "INT64"}, rows)


def test_an_unknown_type_is_refused() -> None:
    message = column(bytes(8), 1, RAW)
    message.type = 77
    with pytest.raises(ColumnError, match="type 77, expected INT64"):
        check_table({"total": message}, {"total": "INT64"}, 1)


def test_a_decompression_bomb_is_refused_before_it_is_inflated() -> None:
    size = 2**28
    deflater = zlib.compressobj()
    bomb = b"".join(deflater.compress(bytes(2**20)) for _ in range(size // 2**20))
    bomb += deflater.flush()
    tracemalloc.start()
    with pytest.raises(ColumnError, match=f"declare {size} decoded bytes"):
        check_table({"total": column(bomb, size // 8, ZLIB)}, {"total": "INT64"}, size // 8)
    # Decoding of data that declares less than it holds stops at the declared size.
    with pytest.raises(ColumnError, match="does not end where 8000 bytes end"):
        decode_column("total", column(bomb, 1000, ZLIB))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20


@pytest.mark.parametrize("shape", ["chain", "star", "comb"])
@pytest.mark.parametrize("level", [1, 9])
def test_the_most_regular_trees_stay_far_below_the_expansion_limit(shape: str, level: int) -> None:
    node = np.arange(1, 200_000)
    above = {"chain": node - 1, "star": node * 0, "comb": node - 1 - (node + 1) % 2}[shape]
    zeros = np.zeros(len(node) + 1, np.uint8)
    tree, _ = Tree.from_parents(np.append(0, above), zeros, zeros)
    columns = [tree.parent, tree.frame, tree.phase, tree.subtree_end]
    assert expansion(columns, level) < MAX_EXPANSION / 4


def test_a_metric_with_equal_rows_stays_far_below_the_expansion_limit() -> None:
    # Ids, then count, total, minimum, maximum and m2.
    columns = [np.arange(200_000, dtype=np.uint32), *[np.zeros(200_000, np.int64)] * 5]
    assert expansion(columns, level=9) < MAX_EXPANSION / 4


def expansion(columns: list[Any], level: int) -> float:
    stored = sum(len(zlib.compress(each.tobytes(), level)) for each in columns)
    return float(sum(each.nbytes for each in columns) / stored)
