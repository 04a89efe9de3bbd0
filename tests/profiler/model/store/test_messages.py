"""The schema's table equals its documented contract, `profile.proto`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf import descriptor_pb2

from deepcontext.profiler.format import schema, wire
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import Aggregation
from deepcontext.profiler.format.status import Status
from deepcontext.profiler.model.store.column import DTYPES
from deepcontext.profiler.model.store.messages import file_descriptor, message_class

if TYPE_CHECKING:
    from collections.abc import Callable

PROTO = Path(schema.__file__).with_name("profile.proto")


def test_the_table_equals_the_compiled_proto_file(tmp_path: Path) -> None:
    pytest.importorskip("grpc_tools", reason="grpcio-tools compiles profile.proto")
    output = tmp_path / "compiled"
    compiler = [sys.executable, "-m", "grpc_tools.protoc", f"--descriptor_set_out={output}"]
    subprocess.run([*compiler, f"-I{PROTO.parent}", PROTO.name], check=True, timeout=60)
    compiled = descriptor_pb2.FileDescriptorSet.FromString(output.read_bytes()).file[0]
    for message in compiled.message_type:
        clear_json_names(message)
    assert file_descriptor() == compiled


def clear_json_names(message: descriptor_pb2.DescriptorProto) -> None:
    """Remove the names that the compiler derives for JSON."""
    for field in message.field:
        field.ClearField("json_name")
    for nested in message.nested_type:
        clear_json_names(nested)


def test_the_enums_of_the_model_are_those_of_the_proto_file() -> None:
    text = PROTO.read_text(encoding="utf-8")
    for kind in FrameKind:
        assert f"{kind.value} {kind.label}" in text
    for phase in Phase:
        assert f"{phase.value} {phase.label}" in text
    for status in Status:
        assert f'"{status}"' in text
    _, values = schema.ENUMS["Aggregation"]
    assert {name: number for name, number in values.items() if number} == {
        each.name: each.value for each in Aggregation
    }
    assert DTYPES.keys() == schema.COLUMN_TYPES.keys()


def test_protobuf_writes_what_the_encoder_of_the_session_writes(
    small_file: bytes, body_of: Callable[[bytes], Any]
) -> None:
    outer: Any = message_class("ProfileFile").FromString(small_file)
    assert (outer.format, outer.major, outer.minor) == (schema.FORMAT, 1, schema.MINOR)
    # Protobuf omits zeros and the encoder writes them; both mean the same.
    again = message_class("ProfileBody").FromString(body_of(small_file).SerializeToString())
    assert again == body_of(small_file)


@pytest.mark.parametrize("value", [0, 1, 127, 128, 2**31, 2**32 - 1, 2**63 - 1, -1, -(2**63)])
def test_integers_are_read_by_protobuf_as_they_were_written(value: int) -> None:
    message: Any = message_class("RunInfo").FromString(wire.encode("RunInfo", {"pid": value}))
    assert message.pid == value
