"""Write docs/reference/python.md from the docstrings of the public names.

usage: python tools/write_python_reference.py [--check]

With --check nothing is written, and the exit code is 1 when the page is not up to date. Public is what the
page has: `deepcontext.__all__`, results of `Profile.query`, `deepcontext.analyzers.__all__`, and the errors.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import deepcontext
from deepcontext import analyzers, errors
from deepcontext.profiler.model.query import NodeView, Query
from deepcontext.profiler.model.query_table import TableRow

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "python.md"
_SECTION = re.compile(r"(Args|Attributes|Returns|Yields|Raises):")
_ENTRY = re.compile(r"^(\*{0,2}\w+): (.*)")


def reference() -> str:
    """Return the text of the page."""
    facade = [name for name in deepcontext.__all__ if name not in {"errors", "__version__"}]
    groups = {
        "deepcontext": [getattr(deepcontext, name) for name in facade],
        "deepcontext.Profile.query": [Query, NodeView, TableRow],
        "deepcontext.analyzers": [getattr(analyzers, name) for name in analyzers.__all__],
        "deepcontext.errors": [each for each in vars(errors).values() if inspect.isclass(each)],
    }
    parts = [
        "# Python",
        "<!-- written by tools/write_python_reference.py; change the docstrings and run it again -->",
        "What is not on this page may change with any version. Units end the names of values.",
    ]
    for name, members in groups.items():
        parts.append(f"## {name}")
        for member in members:
            parts += _member(member) if callable(member) else []
    return "\n\n".join(parts) + "\n"


def _member(member: object) -> Iterator[str]:
    name = getattr(member, "__qualname__", "")
    yield f"### {name}"
    if not inspect.isclass(member):
        yield from _described(name, member)
        return
    for base in member.__mro__:
        if base.__module__.startswith("deepcontext"):
            yield from _text(inspect.cleandoc(base.__doc__ or ""))
    for attribute, value in _own(member):
        yield from _described(f"{name}.{attribute}", value)


def _own(member: type) -> Iterator[tuple[str, object]]:
    """Yield the methods and properties of a class, those of its bases first."""
    for base in reversed(member.__mro__):
        for name, value in vars(base).items():
            plain = getattr(value, "__func__", value)
            is_described = inspect.isfunction(plain) or isinstance(value, property)
            is_own = base.__module__.startswith("deepcontext") and name not in {"html_view", "once"}
            if is_own and is_described and not name.startswith("_"):
                yield name, value


def _described(name: str, value: object) -> Iterator[str]:
    plain = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    shown = name
    if not isinstance(value, property) and callable(plain):
        signature = re.sub(r"^\((self|cls)(, )?", "(", str(inspect.signature(plain)))
        shown += re.sub(r"(: |-> )'([^']*)'", r"\1\2", signature)
    yield f"```text\n{shown}\n```"
    yield from _text(inspect.cleandoc(plain.__doc__ or ""))


def _text(docstring: str) -> Iterator[str]:
    """Yield the paragraphs of a docstring; entries of its sections become lists."""
    for paragraph in docstring.split("\n\n"):
        head, *rest = paragraph.split("\n")
        section = _SECTION.fullmatch(head)
        if section is None:
            yield paragraph
            continue
        lines = inspect.cleandoc("\n" + "\n".join(rest)).split("\n")
        if _ENTRY.fullmatch(lines[0]):
            lines = [_ENTRY.sub(r"- `\1`: \2", each) for each in lines]
        yield f"**{section[1]}**\n\n" + "\n".join(lines)


def main() -> int:
    """Write the page, or compare it."""
    text = reference()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"{PAGE} is not up to date; run tools/write_python_reference.py\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
