"""Shapes and element types of an operator's inputs, as its recorded name holds them (``--shapes``).

``aten::mm(f32[2, 3], f32[3, 4])``: one bracket for each tensor among the inputs, after the type of its
elements. Lists of tensors are not recorded, nor are numbers, strides and results. Profiles made before
types were recorded hold shapes alone: ``aten::mm([2, 3], [3, 4])``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    Shape = tuple[int, ...]
    Shapes = Sequence[Shape | None]

# Occurs in the name of an operator with shapes, and in no other name.
_BEGINNING: Final = re.compile(r"\(\w*\[")
_NAME: Final = re.compile(r"(?P<name>[\w:.]+)\((?P<inputs>.*)\)", re.DOTALL)
_INPUT: Final = re.compile(r"(\w*)\[([^\]]*)\]")
# Bytes of an element, by the names that `native/torch/shapes.cpp` gives to types.
SIZES: Final = {
    **dict.fromkeys(("bool", "u8", "i8", "f8e5m2", "f8e4m3fn", "f8e5m2fnuz", "f8e4m3fnuz"), 1),
    **dict.fromkeys(("i16", "u16", "f16", "bf16"), 2),
    **dict.fromkeys(("i32", "u32", "f32", "c32"), 4),
    **dict.fromkeys(("i64", "u64", "f64", "c64"), 8),
    "c128": 16,
}


@dataclass(frozen=True, slots=True)
class Inputs:
    """The tensors among an operator's inputs, in order.

    Attributes:
        shapes: sizes of each; None where they were not recorded, as of a sparse tensor, or where the
            list was too long.
        types: type of each one's elements, "" where it was not recorded.
    """

    shapes: tuple[Shape | None, ...]
    types: tuple[str, ...]

    @property
    def type(self) -> str:
        """Type of the first input that is no single number, "" without one."""
        pairs = zip(self.shapes, self.types, strict=True)
        return next((kind for shape, kind in pairs if shape), "")


def has_inputs(name: str) -> bool:
    """Return whether a name holds the shapes of an operator's inputs."""
    return _BEGINNING.search(name) is not None


def without_inputs(name: str) -> str:
    """Return an operator's name alone: ``aten::mm`` of ``aten::mm(f32[2, 3], f32[3, 4])``."""
    if not name.endswith(")"):
        return name
    found = _BEGINNING.search(name)
    return name[: found.start()] if found else name.removesuffix("()")


def split_name(name: str) -> tuple[str, Inputs]:
    """Return an operator's name alone, and its inputs."""
    found = _NAME.fullmatch(name)
    if found is None:
        return name, Inputs((), ())
    inputs = [(_shape(sizes), kind) for kind, sizes in _INPUT.findall(found["inputs"])]
    if found["inputs"].endswith("..."):
        inputs.append((None, ""))
    return found["name"], Inputs(
        tuple(shape for shape, _ in inputs), tuple(kind for _, kind in inputs)
    )


def _shape(text: str) -> Shape | None:
    try:
        return tuple(int(size) for size in text.split(",") if size.strip())
    except ValueError:
        return None
