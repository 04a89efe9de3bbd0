"""Write `web/src/api_types.ts`: the server's answers as TypeScript sees them.

python tools/write_web_types.py            write the file
python tools/write_web_types.py --check    fail when it differs from what is committed
"""

from __future__ import annotations

import dataclasses
import sys
import types
import typing
from pathlib import Path

from deepcontext.ui.web import answers

TARGET = Path(__file__).parents[1] / "web" / "src" / "api_types.ts"
SCALARS = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}
HEAD = """\
// Generated from src/deepcontext/ui/web/answers.py by tools/write_web_types.py; do not edit.
"""


def type_text(annotation: object) -> str:
    """Return a Python annotation as a TypeScript type."""
    if annotation in SCALARS:
        return SCALARS[typing.cast("type", annotation)]
    if annotation is typing.Any:
        return "unknown"
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is list:
        return f"{type_text(parts[0])}[]"
    if origin is dict:
        return f"Record<{type_text(parts[0])}, {type_text(parts[1])}>"
    if origin is types.UnionType:
        return " | ".join(type_text(part) for part in parts)
    if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
        return annotation.__name__
    raise TypeError(f"no TypeScript type for {annotation!r}")


def interface(cls: type) -> str:
    """Return one dataclass as an interface."""
    hints = typing.get_type_hints(cls)
    fields = [
        f"  {field.name}: {type_text(hints[field.name])};" for field in dataclasses.fields(cls)
    ]
    comment = " ".join((cls.__doc__ or "").split())
    return "\n".join([f"/** {comment} */", f"export interface {cls.__name__} {{", *fields, "}"])


def text() -> str:
    """Return the whole file."""
    classes = [each for each in vars(answers).values() if dataclasses.is_dataclass(each)]
    return (
        HEAD + "\n" + "\n\n".join(interface(typing.cast("type", each)) for each in classes) + "\n"
    )


def main() -> int:
    """Write or check the file; 1 when the check fails."""
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(text(), "utf-8")
        return 0
    if TARGET.read_text("utf-8") == text():
        return 0
    sys.stderr.write(f"{TARGET} is out of date; run python tools/write_web_types.py\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
