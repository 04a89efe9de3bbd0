"""Encode messages of `schema.py` in protobuf's wire format, with the standard library alone.

The writer runs inside the program under test, where importing protobuf (or numpy) would change the
program. Reading uses protobuf itself. A test decodes what is written here with protobuf.
Source: protobuf.dev, "Encoding".
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any

from deepcontext.profiler.format import schema
from deepcontext.profiler.format.schema import MESSAGES, Field, Shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_VARINT, _FIXED64, _BYTES = 0, 1, 2
_INTEGERS = frozenset({"uint32", "uint64", "int32", "int64", "bool", *schema.ENUMS})
_COMPRESS_FROM_BYTES = 256
_COMPRESSION_LEVEL = 1  # 3 times faster than the default level for 10 % larger files


def column(type_name: str, data: bytes) -> dict[str, Any]:
    """Return a Column message for little-endian `data` of one of `schema.COLUMN_TYPES`."""
    size = {"UINT8": 1, "UINT32": 4, "INT32": 4}.get(type_name, 8)
    packed, encoding = data, "RAW"
    if len(data) >= _COMPRESS_FROM_BYTES:
        smaller = zlib.compress(data, _COMPRESSION_LEVEL)
        if len(smaller) < len(data):
            packed, encoding = smaller, "ZLIB"
    return {
        "type": schema.COLUMN_TYPES[type_name],
        "count": len(data) // size,
        "encoding": schema.ENCODINGS[encoding],
        "data": packed,
    }


def encode_file(body: Mapping[str, Any]) -> bytes:
    """Return the bytes of a .dcprof file that holds a ProfileBody."""
    encoded = encode("ProfileBody", body)
    return encode(
        "ProfileFile",
        {
            "format": schema.FORMAT,
            "major": schema.MAJOR,
            "minor": schema.MINOR,
            "body_crc32": zlib.crc32(encoded),
            "body": encoded,
        },
    )


def encode(message: str, values: Mapping[str, Any]) -> bytes:
    """Return `values` as a message; fields that are missing or None are left out."""
    parts: list[bytes] = []  # joined once: the parts of a large profile are many megabytes
    for field in MESSAGES[message]:
        value = values.get(field.name)
        if value is not None:
            for occurrence in _occurrences(field, value):
                parts += _field(field, occurrence)
    return b"".join(parts)


def _occurrences(field: Field, value: Any) -> Iterator[Any]:
    match field.shape:
        case Shape.REPEATED:
            yield from value
        case Shape.MAP:
            entry = Field("value", 2, field.type)
            for key, item in value.items():
                yield b"".join(_field(Field("key", 1, "string"), key) + _field(entry, item))
        case Shape.ONE | Shape.OPTIONAL:
            yield value


def _field(field: Field, value: Any) -> tuple[bytes, ...]:
    if field.shape is Shape.MAP:
        return _prefixed(field.number, value)
    if field.type in _INTEGERS:
        return (_tag(field.number, _VARINT), _varint(value))
    if field.type == "double":
        return (_tag(field.number, _FIXED64), struct.pack("<d", value))
    if field.type == "string":
        # A lone surrogate (an undecodable byte of a file name) has no UTF-8 form.
        return _prefixed(field.number, value.encode("utf-8", "replace"))
    if field.type == "bytes":
        return _prefixed(field.number, value)
    return _prefixed(field.number, encode(field.type, value))


def _prefixed(number: int, payload: bytes) -> tuple[bytes, ...]:
    return (_tag(number, _BYTES), _varint(len(payload)), payload)


def _tag(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1  # negative numbers are written as their 64-bit two's complement
    parts = bytearray()
    while value > 0x7F:  # noqa: PLR2004  seven bits a byte
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
