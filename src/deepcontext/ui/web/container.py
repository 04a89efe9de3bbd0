"""Named arrays and a header in one block of bytes; the counterpart is `web/src/engine/container.ts`.

Layout: the length of the header (uint32, little-endian), the header (JSON), the arrays one after
another. In each array the first bytes of all numbers come first, then the second bytes, and so on,
because this compresses better.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

_UNSIGNED: Final = (np.uint8, np.uint16, np.uint32)
_NAMES: Final = {"uint8": "u8", "uint16": "u16", "uint32": "u32", "int64": "i64", "float64": "f64"}


def pack(header: str, arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Return the block.

    Args:
        header: a JSON text.
        arrays: columns of whole numbers or of float64, each of shape (rows,). Whole numbers are
            stored in the smallest type that holds them.
    """
    described = {}
    parts = []
    at = 0
    for name, array in arrays.items():
        column = _smallest(array)
        described[name] = {"type": _NAMES[column.dtype.name], "at": at, "length": len(column)}
        planes = _planes(column)
        parts.append(planes)
        at += len(planes)
    head = f'{{"header":{header},"arrays":{json.dumps(described, separators=(",", ":"))}}}'.encode()
    return b"".join([len(head).to_bytes(4, "little"), head, *parts])


def _smallest(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if array.dtype.kind == "f":
        return array.astype(np.float64)
    if array.dtype.kind == "b" or not len(array):
        return array.astype(np.uint8)
    if int(array.min()) >= 0:
        for kind in _UNSIGNED:
            if int(array.max()) <= np.iinfo(kind).max:
                return array.astype(kind)
    return array.astype(np.int64)


def _planes(column: npt.NDArray[Any]) -> bytes:
    little = column.astype(column.dtype.newbyteorder("<"))
    return little.view(np.uint8).reshape(len(column), -1).T.tobytes() if len(column) else b""
