"""Classes of protobuf messages of other programs, made from a table of the fields that are used.

Made at run time, as for deepcontext's file format (`profiler/model/store/messages.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

if TYPE_CHECKING:
    from google.protobuf.message import Message

# Message -> field: (number, type, repeated).
MessageTable = dict[str, dict[str, tuple[int, str, bool]]]

_Proto = descriptor_pb2.FieldDescriptorProto
_SCALARS: Final = {
    "bytes": _Proto.TYPE_BYTES,
    "double": _Proto.TYPE_DOUBLE,
    "int32": _Proto.TYPE_INT32,
    "int64": _Proto.TYPE_INT64,
    "string": _Proto.TYPE_STRING,
    "uint32": _Proto.TYPE_UINT32,
    "uint64": _Proto.TYPE_UINT64,
}


def message_class(package: str, messages: MessageTable, name: str) -> type[Message]:
    """Return the class of the message called `name`."""
    # proto2, so that a field is written whenever it is set: 0 may mean something.
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package)
    for message_name, fields in messages.items():
        message = file.message_type.add(name=message_name)
        for field_name, (number, kind, is_repeated) in fields.items():
            field = message.field.add(name=field_name, number=number)
            field.label = _Proto.LABEL_REPEATED if is_repeated else _Proto.LABEL_OPTIONAL
            field.type = _SCALARS.get(kind, _Proto.TYPE_MESSAGE)
            if kind not in _SCALARS:
                field.type_name = f".{package}.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))
