"""Lines of instructions, against CPython's own decoder, for every instruction of real programs."""

from __future__ import annotations

import json
import sysconfig
import types
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deepcontext import _native

if TYPE_CHECKING:
    from collections.abc import Iterator

_CODE_UNIT_BYTES = 2
_STANDARD_LIBRARY = Path(sysconfig.get_paths()["stdlib"])
_MODULES = sorted({
    *_STANDARD_LIBRARY.glob("*.py"),
    *(_STANDARD_LIBRARY / "asyncio").glob("*.py"),
    *(_STANDARD_LIBRARY / "email").glob("*.py"),
    *(_STANDARD_LIBRARY / "importlib").glob("*.py"),
    *(_STANDARD_LIBRARY / "json").glob("*.py"),
    *(_STANDARD_LIBRARY / "unittest").glob("*.py"),
})


def _all_code(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _all_code(constant)


def _seen_lines(code: types.CodeType) -> list[int]:
    table, first = code.co_linetable, code.co_firstlineno
    return [
        _native.line_of_instruction(table, first, offset)
        for offset in range(0, len(code.co_code), _CODE_UNIT_BYTES)
    ]


def _check(code: types.CodeType) -> int:
    """Compare all instructions; return how many there were."""
    seen = _seen_lines(code)
    # No line is 0 here; a line 0 (a module's first instruction) is a line that does not exist.
    positions = [line or 0 for line, *_ in code.co_positions()]
    assert seen == positions, code
    for start, end, line in code.co_lines():
        units = seen[start // _CODE_UNIT_BYTES : end // _CODE_UNIT_BYTES]
        assert set(units) <= {line or 0}, (code, start, end)
    return len(seen)


def test_every_instruction_of_the_standard_library() -> None:
    instructions = 0
    for path in _MODULES:
        module = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
        instructions += sum(map(_check, _all_code(module)))
    assert instructions > 300_000


@pytest.mark.parametrize(
    "source",
    [
        "",
        "x = 1",
        "\n" * 5000 + "x = 1\n" + "\n" * 70000 + "y = 2",
        "f(" + "1,\n" * 300 + ")",
        "x = (1 +\n\n\n2 +\n3)\ny = " + "a" * 5000,
        "for i in x:\n  try:\n    a\n  except b:\n    c\n  finally:\n    d",
        "with a as b, c as d:\n  pass\nasync def f():\n  async with a:\n    await b",
        "match a:\n  case [1, *b] if c:\n    d\n  case {'e': f}:\n    g",
        "lambda: (yield)\n[x for x in y if\n z]\nclass A(\n  B): pass",
    ],
)
def test_every_instruction_of_odd_sources(source: str) -> None:
    module = compile(source, "odd.py", "exec")
    assert sum(map(_check, _all_code(module))) > 0


@pytest.mark.parametrize("first_line", [1, 1000, 1 << 20, (1 << 31) - 1000])
def test_code_moved_to_another_line(first_line: int) -> None:
    module = compile(Path(str(json.__file__)).read_bytes(), "json.py", "exec")
    for code in _all_code(module):
        _check(code.replace(co_firstlineno=first_line))


def test_code_without_locations() -> None:
    code = compile("x = 1\ny = 2", "none.py", "exec").replace(co_linetable=b"")
    assert set(_seen_lines(code)) == {0}


def test_a_table_of_noise_is_survived() -> None:
    for seed in range(256):
        noise = bytes((seed * 31 + i * i * 7 + i) % 256 for i in range(300))
        for offset in range(0, 2000, 2):
            assert _native.line_of_instruction(noise, 1, offset) >= 0
