"""Facts and columns of numbers as the payload of a section.

    OFFSET  SIZE    DESCRIPTION
    0       4       size of the header, uint32, little-endian
    4       header  JSON, compressed with zlib: {"facts": ..., "columns": [{"name", "type", "shape",
                    "size"}, ...]}; types as in numpy: "u1", "u2", "u4", "u8", "i4", "i8"
    4 + h   varies  the columns one after the other, each `size` bytes: a little-endian array in
                    row-major order, its bytes by significance (all lowest bytes first), then zlib

Invariant: any bytes give either the packed values or a `ProfileDataError`.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from deepcontext.errors import ProfileDataError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    Array = npt.NDArray[Any]

_TYPES: Final = frozenset({"u1", "u2", "u4", "u8", "i4", "i8"})
_SIZE: Final = struct.Struct("<I")
_MOST_DIMENSIONS: Final = 2
# Limit of deflate. Source: zlib.net, "Maximum Compression Factor".
_MAX_EXPANSION: Final = 1032


@dataclass(frozen=True, slots=True)
class Packed:
    """The content of a section.

    Attributes:
        facts: values of JSON's types.
        columns: arrays by name.
    """

    facts: Mapping[str, Any]
    columns: Mapping[str, Array]


def pack(facts: Mapping[str, Any], columns: Mapping[str, Array]) -> bytes:
    """Return the payload; the same values always give the same bytes."""
    described, payloads = [], []
    for name, column in columns.items():
        kind = f"{column.dtype.kind}{column.dtype.itemsize}"
        payload = zlib.compress(_by_significance(column), 6)
        described.append({
            "name": name,
            "type": kind,
            "shape": list(column.shape),
            "size": len(payload),
        })
        payloads.append(payload)
    text = json.dumps({"facts": facts, "columns": described}, separators=(",", ":"))
    header = zlib.compress(text.encode(), 6)
    return b"".join([_SIZE.pack(len(header)), header, *payloads])


def unpack(payload: bytes, section: str) -> Packed:
    """Return the content of a payload.

    Args:
        payload: what `pack` returned.
        section: name of the section in errors.

    Raises:
        ProfileDataError: the payload is damaged.
    """
    try:
        return _unpacked(payload)
    except (ValueError, KeyError, TypeError, struct.error, zlib.error) as error:
        raise damage(section, str(error)) from error


def damage(section: str, what: str) -> ProfileDataError:
    """Return the error for a damaged section."""
    return ProfileDataError(
        f"cannot read section '{section}': {what}; merge the profiles of the ranks again"
    )


def _unpacked(payload: bytes) -> Packed:
    (size,) = _SIZE.unpack_from(payload)
    offset = _SIZE.size + size
    compressed = payload[_SIZE.size : offset]
    header = json.loads(_inflated(compressed, _MAX_EXPANSION * len(compressed), exact=False))
    columns = {}
    for each in header["columns"]:
        end = offset + int(each["size"])
        columns[str(each["name"])] = _column(payload[offset:end], each)
        offset = end
    if offset != len(payload):
        raise ValueError(f"{len(payload)} bytes, its columns end at {offset}")
    if not isinstance(header["facts"], dict):
        raise TypeError("'facts' is no object")
    return Packed(header["facts"], columns)


def _column(payload: bytes, described: Mapping[str, Any]) -> Array:
    name, kind = described["name"], described["type"]
    shape = tuple(int(length) for length in described["shape"])
    if kind not in _TYPES or not 0 < len(shape) <= _MOST_DIMENSIONS or min(shape) < 0:
        raise ValueError(f"column '{name}' has the unknown type or shape {kind} {shape}")
    dtype = np.dtype(kind).newbyteorder("<")
    rows = shape[0] * (shape[1] if len(shape) > 1 else 1)
    size = rows * dtype.itemsize
    if size > _MAX_EXPANSION * len(payload):
        raise ValueError(f"column '{name}': {len(payload)} bytes declare {size} bytes")
    planes = np.frombuffer(_inflated(payload, size, exact=True), np.uint8)
    values = np.ascontiguousarray(planes.reshape(dtype.itemsize, rows).T).view(dtype)
    native: Array = values.reshape(shape).astype(dtype.newbyteorder("="), copy=False)
    return native


def _by_significance(column: Array) -> bytes:
    """Return the bytes of a column by significance, because upper bytes repeat most."""
    little_endian = np.ascontiguousarray(column, column.dtype.newbyteorder("<"))
    planes = little_endian.reshape(-1, 1).view(np.uint8)
    return planes.T.tobytes()


def _inflated(payload: bytes, size: int, *, exact: bool) -> bytes:
    inflater = zlib.decompressobj()
    inflated = inflater.decompress(payload, size + 1)
    if not inflater.eof or inflater.unused_data or (exact and len(inflated) != size):
        raise ValueError(f"compressed data does not end where {size} bytes end")
    return inflated
