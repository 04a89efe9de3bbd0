"""Decode a `Column` message: an array of numbers.

Invariant: memory is allocated only after the declared size was checked against the table's rows
and against the number of stored bytes.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from deepcontext.profiler.format import schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

# NumPy's types of the stored arrays, by `schema.COLUMN_TYPES`.
DTYPES: dict[str, np.dtype[Any]] = {
    "UINT8": np.dtype("u1"),
    "UINT32": np.dtype("<u4"),
    "INT32": np.dtype("<i4"),
    "UINT64": np.dtype("<u8"),
    "INT64": np.dtype("<i8"),
    "FLOAT64": np.dtype("<f8"),
}
_TYPE_NAMES = {number: name for name, number in schema.COLUMN_TYPES.items()}
# Together, the columns of a table never compress better than this, because one column holds
# ascending ids, in which deflate finds few repetitions. Measured on the most regular tables: 10 to 1
# for a tree, 31 to 1 for a metric. A decompression bomb needs far more; zeros alone reach 1032 to 1.
MAX_EXPANSION = 128


class ColumnError(ValueError):
    """A column has invalid content; the message begins with the field's name."""


def check_table(columns: Mapping[str, Any], types: Mapping[str, str], rows: int) -> None:
    """Check that every column has the type and number of rows of its table, without decoding.

    Args:
        columns: `Column` messages by field name.
        types: expected type by field name, a key of `schema.COLUMN_TYPES`.
        rows: number of rows that every column must have.

    Raises:
        ColumnError: a column disagrees, or the stored bytes cannot hold so many rows.
    """
    stored = decoded = 0
    for name, column in columns.items():
        if column.type != schema.COLUMN_TYPES[types[name]]:
            found = _TYPE_NAMES.get(column.type, column.type)
            raise ColumnError(f"'{name}': type {found}, expected {types[name]}")
        if column.count != rows:
            raise ColumnError(f"'{name}': {column.count} rows, expected {rows}")
        stored += len(column.data)
        decoded += rows * DTYPES[types[name]].itemsize
    if decoded > MAX_EXPANSION * stored:
        raise ColumnError(
            f"'{next(iter(columns))}': {stored} stored bytes declare {decoded} decoded bytes, more "
            f"than {MAX_EXPANSION} times as many"
        )


def decode_column(name: str, column: Any) -> npt.NDArray[Any]:
    """Return the numbers of a column that passed `check_table`, read-only, shape (count,).

    Raises:
        ColumnError: the data does not decompress, or not to the declared size.
    """
    dtype = DTYPES[_TYPE_NAMES[column.type]]
    size = column.count * dtype.itemsize
    match column.encoding:
        case 0:
            data = column.data
        case 1:
            data = _inflate(name, column.data, size)
        case unknown:
            raise ColumnError(f"'{name}': unknown encoding {unknown}")
    if len(data) != size:
        raise ColumnError(f"'{name}': {len(data)} bytes of data, expected {size}")
    array: npt.NDArray[Any] = np.frombuffer(data, dtype)
    return array.astype(dtype.newbyteorder("="), copy=False)


def _inflate(name: str, data: bytes, size: int) -> bytes:
    """Decompress to exactly `size` bytes; stop a longer stream at the first byte too many."""
    inflater = zlib.decompressobj()
    try:
        # One byte more than allowed: 0 would mean "no limit", and the stream's end must be reached.
        inflated = inflater.decompress(data, size + 1)
    except zlib.error as error:
        raise ColumnError(f"'{name}': the compressed data is damaged ({error})") from error
    if not inflater.eof or inflater.unused_data:
        raise ColumnError(f"'{name}': the compressed data does not end where {size} bytes end")
    return inflated
