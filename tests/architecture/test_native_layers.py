"""Includes and build targets of native/ agree with the table in native/README.md."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

NATIVE = Path(__file__).parents[2] / "native"
KNOWS_PYTHON = {"python", "sampling", "torch", "jax", "session", "bindings"}


@dataclass(frozen=True)
class Row:
    """A folder's row of the table."""

    target: str  # "" for none
    may_include: frozenset[str]


def _names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def _table() -> dict[str, Row]:
    rows = {}
    for line in (NATIVE / "README.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[0].startswith("`"):
            target = "".join(_names(cells[1]))
            rows[_names(cells[0])[0]] = Row(target, frozenset(_names(cells[4])))
    return rows


TABLE = _table()
LAYERS = [folder for folder in TABLE if folder != "tests"]


def _folder_of(path: Path) -> str:
    """The table's folder a file lies in: `abi/check` is of `abi`."""
    folders = [str(folder) for folder in path.relative_to(NATIVE).parents]
    return next(folder for folder in folders if folder in TABLE)


def _sources() -> list[Path]:
    return sorted(path for suffix in ("*.h", "*.cpp") for path in NATIVE.rglob(suffix))


def _includes(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    yield from re.findall(r'^\s*#\s*include\s+["<]([^">]+)[">]', text, re.MULTILINE)


def _targets() -> dict[str, set[str]]:
    """Sources of each target of CMakeLists.txt."""
    text = re.sub(r"#.*", "", (NATIVE / "CMakeLists.txt").read_text(encoding="utf-8"))
    calls = re.findall(r"(?:add_library|nanobind_add_module)\(\s*(\w+)([^)]*)\)", text)
    return {
        name: sources
        for name, arguments in calls
        if (sources := {word for word in arguments.split() if word.endswith(".cpp")})
    }


def test_every_file_lies_in_a_folder_of_the_table() -> None:
    folders = {str(path.parent.relative_to(NATIVE)) for path in _sources()}
    assert {folder for folder in folders if folder.split("/")[0] not in {"abi", "tests"}} == (
        set(LAYERS) - {"abi"}
    )


@pytest.mark.parametrize("folder", LAYERS)
def test_a_folder_includes_what_its_row_says(folder: str) -> None:
    used = {
        target: f"{path.relative_to(NATIVE)} includes {include}"
        for path in _sources()
        if _folder_of(path) == folder
        for include in _includes(path)
        if (NATIVE / include).exists() and (target := _folder_of(NATIVE / include)) != folder
    }
    allowed = TABLE[folder].may_include
    assert not used.keys() - allowed, [used[target] for target in used.keys() - allowed]
    assert used.keys() == allowed, "an arrow of native/README.md that nothing uses"


def _tangled(graph: dict[str, set[str]]) -> list[str]:
    """Return the nodes on cycles and above them: repeatedly remove nodes without arrows."""
    while done := {node for node, targets in graph.items() if not targets}:
        graph = {node: targets - done for node, targets in graph.items() if node not in done}
    return sorted(graph)


def test_no_arrow_runs_back() -> None:
    files = {str(path.relative_to(NATIVE)): path for path in _sources()}
    assert not _tangled({folder: set(TABLE[folder].may_include) for folder in LAYERS})
    assert not _tangled({name: set(_includes(path)) & set(files) for name, path in files.items()})


def test_python_and_nanobind_are_seen_only_where_they_may_be() -> None:
    for path in _sources():
        folder = _folder_of(path)
        includes = set(_includes(path))
        assert "Python.h" not in includes or folder in KNOWS_PYTHON, path
        is_nanobind = any(include.startswith("nanobind/") for include in includes)
        assert not is_nanobind or folder == "bindings", path


def test_a_target_builds_the_folders_that_name_it() -> None:
    built = {
        target: {str(Path(source).parent) for source in sources}
        for target, sources in _targets().items()
    }
    named: dict[str, set[str]] = {}
    for folder in LAYERS:
        if TABLE[folder].target:
            named.setdefault(TABLE[folder].target, set()).add(folder)
    assert built == named


def test_every_source_is_built_once() -> None:
    all_sources = [source for sources in _targets().values() for source in sources]
    sources = {
        str(path.relative_to(NATIVE))
        for path in _sources()
        if path.suffix == ".cpp" and _folder_of(path) not in {"abi", "fuzz", "tests"}
    }
    assert sorted(all_sources) == sorted(sources)


def test_system_calls_have_arguments_as_wide_as_registers() -> None:
    """`syscall` reads longs, and an `int` on the stack has an upper half of anything."""
    calls = {
        str(path.relative_to(NATIVE))
        for path in _sources()
        if re.search(r"\bsyscall\(", path.read_text(encoding="utf-8"))
    }
    assert {name for name in calls if not name.startswith("tests/")} == {"core/system_call.h"}
