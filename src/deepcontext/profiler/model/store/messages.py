"""Message classes of the profile file, made from the table in `schema.py`.

Made at run time in a private pool, because generated code would be tied to one major version of
protobuf, and the default pool is shared with every other package in the process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from deepcontext.profiler.format import schema
from deepcontext.profiler.format.schema import Field, Shape

if TYPE_CHECKING:
    from google.protobuf.message import Message

_Proto = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "bool": _Proto.TYPE_BOOL,
    "bytes": _Proto.TYPE_BYTES,
    "double": _Proto.TYPE_DOUBLE,
    "int64": _Proto.TYPE_INT64,
    "string": _Proto.TYPE_STRING,
    "uint32": _Proto.TYPE_UINT32,
    "uint64": _Proto.TYPE_UINT64,
}


def message_class(name: str) -> type[Message]:
    """Return the class of the message called `name` in `schema.MESSAGES`."""
    descriptor = _POOL.FindMessageTypeByName(f"{schema.PACKAGE}.{name}")
    return message_factory.GetMessageClass(descriptor)


def file_descriptor() -> descriptor_pb2.FileDescriptorProto:
    """Return the same descriptor as compiling `profile.proto`, without comments."""
    file = descriptor_pb2.FileDescriptorProto(
        name="profile.proto", package=schema.PACKAGE, syntax="proto3"
    )
    for name, fields in schema.MESSAGES.items():
        _add_message(file.message_type.add(name=name), fields)
    return file


def _make_pool() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file_descriptor().SerializeToString())
    return pool


def _add_message(message: descriptor_pb2.DescriptorProto, fields: tuple[Field, ...]) -> None:
    for enum_name, (owner, values) in schema.ENUMS.items():
        if owner == message.name:
            enum = message.enum_type.add(name=enum_name)
            for value_name, number in values.items():
                enum.value.add(name=value_name, number=number)
    for field in fields:
        _add_field(message, field)


def _add_field(message: descriptor_pb2.DescriptorProto, field: Field) -> None:
    match field.shape:
        case Shape.MAP:
            _add_map(message, field)
        case Shape.OPTIONAL:
            # proto3 expresses presence as a oneof group that holds only this field.
            message.oneof_decl.add(name=f"_{field.name}")
            index = len(message.oneof_decl) - 1
            added = message.field.add(oneof_index=index, proto3_optional=True)
            _describe(added, field, _Proto.LABEL_OPTIONAL)
        case Shape.REPEATED:
            _describe(message.field.add(), field, _Proto.LABEL_REPEATED)
        case Shape.ONE:
            _describe(message.field.add(), field, _Proto.LABEL_OPTIONAL)


def _add_map(message: descriptor_pb2.DescriptorProto, field: Field) -> None:
    """Add a map field; on the wire it is a repeated message of key and value."""
    entry_name = field.name.title().replace("_", "") + "Entry"
    entry = message.nested_type.add(name=entry_name)
    entry.options.map_entry = True
    _describe(entry.field.add(), Field("key", 1, "string"), _Proto.LABEL_OPTIONAL)
    _describe(entry.field.add(), Field("value", 2, field.type), _Proto.LABEL_OPTIONAL)
    added = message.field.add(name=field.name, number=field.number, label=_Proto.LABEL_REPEATED)
    added.type = _Proto.TYPE_MESSAGE
    added.type_name = f".{schema.PACKAGE}.{message.name}.{entry_name}"


def _describe(added: Any, field: Field, label: _Proto.Label.ValueType) -> None:
    added.name, added.number, added.label = field.name, field.number, label
    if field.type in _SCALARS:
        added.type = _SCALARS[field.type]
    elif field.type in schema.ENUMS:
        owner, _ = schema.ENUMS[field.type]
        added.type = _Proto.TYPE_ENUM
        added.type_name = f".{schema.PACKAGE}.{owner}.{field.type}"
    else:
        added.type = _Proto.TYPE_MESSAGE
        added.type_name = f".{schema.PACKAGE}.{field.type}"


_POOL: Final = _make_pool()
