"""With `shapes=True` operators are told apart by the shapes of their tensors."""

from __future__ import annotations

from typing import Any

import pytest

from deepcontext import _native
from deepcontext.profiler.model.operator_inputs import SIZES

torch = pytest.importorskip("torch")
_native.torch_load()
can_tell_shapes = pytest.mark.skipif(
    not _native.torch_has_shapes(), reason="this torch prints errors when shapes are requested"
)


def names(recording: Any, start: str) -> set[str]:
    return {
        recording.frame(node).name
        for node in recording.operators()
        if recording.frame(node).name.startswith(start)
    }


def multiply() -> None:
    for rows in (2, 3, 2):
        torch.mm(torch.ones(rows, 4), torch.ones(4, 5))


@can_tell_shapes
def test_each_shape_is_an_operator_of_its_own(record: Any) -> None:
    recording = record(multiply, shapes=True)
    assert names(recording, "aten::mm") == {
        "aten::mm(f32[2, 4], f32[4, 5])",
        "aten::mm(f32[3, 4], f32[4, 5])",
    }
    assert recording.calls("aten::mm(f32[2, 4], f32[4, 5])") == 2
    assert names(record(multiply), "aten::mm") == {"aten::mm"}


# Every type that can be made on a CPU, with the bytes of an element as torch knows them.
TYPES = {
    "bool": torch.bool,
    "u8": torch.uint8,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "u16": torch.uint16,
    "u32": torch.uint32,
    "u64": torch.uint64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "c32": torch.complex32,
    "c64": torch.complex64,
    "c128": torch.complex128,
    "f8e5m2": torch.float8_e5m2,
    "f8e4m3fn": torch.float8_e4m3fn,
    "f8e5m2fnuz": torch.float8_e5m2fnuz,
    "f8e4m3fnuz": torch.float8_e4m3fnuz,
}


@can_tell_shapes
@pytest.mark.filterwarnings("ignore::UserWarning")  # of torch, about c32
def test_types_of_elements_are_named_and_their_sizes_known(record: Any) -> None:
    assert {name: SIZES[name] for name in TYPES} == {
        name: each.itemsize for name, each in TYPES.items()
    }
    tensors = [torch.empty(size, dtype=each) for size, each in enumerate(TYPES.values(), 1)]
    recording = record(lambda: [tensor.clone() for tensor in tensors], shapes=True)
    expected = {f"aten::clone({name}[{size}])" for size, name in enumerate(TYPES, 1)}
    assert names(recording, "aten::clone(") == expected


@can_tell_shapes
def test_the_same_shapes_of_two_types_are_two_operators(record: Any) -> None:
    for _ in range(2):
        recording = record(
            lambda: [
                torch.ones(2, dtype=each).neg() for each in (torch.float32, torch.float64) * 2
            ],
            shapes=True,
        )
        assert names(recording, "aten::neg(") == {"aten::neg(f32[2])", "aten::neg(f64[2])"}
        assert recording.calls("aten::neg(f64[2])") == 2


def many_kinds() -> None:
    scalar = torch.tensor(2.0)
    torch.pow(scalar, 3)
    torch.cat([torch.ones(2, 3), torch.ones(4, 3)])
    torch.add(torch.ones(0, 3), torch.ones(1))
    torch.nn.functional.linear(torch.ones(1, 2, 3), torch.ones(4, 3), None)


@can_tell_shapes
def test_scalars_lists_and_empty_tensors(record: Any) -> None:
    recording = record(many_kinds, shapes=True)
    assert "aten::pow(f32[])" in names(recording, "aten::pow(")
    assert "aten::add(f32[0, 3], f32[1])" in names(recording, "aten::add(")
    assert "aten::linear(f32[1, 2, 3], f32[4, 3])" in names(recording, "aten::linear")
    # A list of tensors is not an argument with a shape.
    assert names(recording, "aten::cat(") == {"aten::cat()"}


def odd_tensors() -> None:
    sparse = torch.eye(3).to_sparse()
    torch.sparse.mm(sparse, torch.ones(3, 2))
    sparse.to_sparse_csr().sum()
    ragged = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])
    ragged + ragged
    jagged = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    jagged.sin()
    torch.ones(2, 2, device="meta").sin()
    torch.quantize_per_tensor(torch.ones(2, 2), 0.1, 0, torch.quint8).dequantize()
    with torch._subclasses.FakeTensorMode():
        torch.ones(5, 7).sin()
    torch.func.vmap(torch.sin)(torch.ones(3, 2))
    torch.ones(2, 2).to_mkldnn().relu()


@can_tell_shapes
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_tensors_without_a_plain_shape_print_nothing(
    record: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    recording = record(odd_tensors, shapes=True)
    assert not capfd.readouterr().err
    assert {"aten::sin(f32[3, 2])", "aten::sin([?])"} <= names(recording, "aten::sin")


@pytest.mark.long
@can_tell_shapes
def test_symbolic_shapes_print_nothing(script: Any) -> None:
    """Dynamic shapes are tensors whose sizes are expressions, while they are being traced."""
    script.run("""
        import deepcontext, torch
        def work(value):
            return torch.sin(value).view(-1) * value.shape[0]
        compiled = torch.compile(work, dynamic=True, backend="aot_eager")
        deepcontext.start("out.dcprof", shapes=True)
        compiled(torch.ones(3, 4))
        compiled(torch.ones(5, 6))
        deepcontext.stop()
    """)
    assert "aten::sin(f32[5, 6])" in names(script.recording(), "aten::sin")


@can_tell_shapes
def test_a_long_list_of_shapes_ends_in_dots(record: Any) -> None:
    many = [torch.ones(1, 1, 1, 1, 1, 1, 1, 1, requires_grad=True) for _ in range(60)]
    recording = record(lambda: torch._foreach_add(many, 1), shapes=True)
    assert all(len(name) < 512 for name in names(recording, ""))


@can_tell_shapes
def test_many_dimensions_are_named(record: Any) -> None:
    """Their names are made anew for each call: the numbers do not fit the memory of names."""
    one = torch.ones(*[1] * 10, 2)

    def work() -> None:
        for _ in range(3):
            torch.where(one > 0, one, one)

    recording = record(work, shapes=True)
    shape = "[" + "1, " * 10 + "2]"
    (name,) = names(recording, "aten::where")
    assert name == f"aten::where(bool{shape}, f32{shape}, f32{shape})"
    assert recording.calls(name) == 3


@pytest.mark.skipif(_native.torch_has_shapes(), reason="this torch can tell shapes")
def test_a_torch_that_cannot_tell_shapes_records_the_rest_and_says_why(
    record: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    recording = record(multiply, shapes=True)
    assert names(recording, "aten::mm") == {"aten::mm"}
    (collector,) = (c for c in recording.profile.trust.collectors if c.name == "torch")
    assert collector.status == "degraded"
    assert "prints errors when shapes are requested" in collector.reason
    assert not capfd.readouterr().err
