"""What is known about frameworks: classes of operators, and what each cause means and how to change it.

Plain data in the TOML files of this folder, read once. Does not look at profiles. Invariant: a cause has one
entry, and entries come in the order in which causes explain a cost: specific before general.
"""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_FILES: Final = (
    "modes",
    "steps",
    "waiting",
    "models",
    "tables",
    "functions",
    "time",
    "device",
    "memory",
    "places",
)
_OPERATORS: Final = "operators.toml"
_TORCH: Final = "aten::"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A cause: where it is looked for, what it is called, and what to change.

    Attributes:
        key: name of the cause.
        id: id of the analyzer that reports it.
        title: names the place and the cause, with fields in braces.
        advice: what to do, with fields; `misleads`: when the advice is wrong.
        assumes: assumption under which the bound of the gain holds.
        link: the framework's own documentation.
        rank: position in the catalogue; the first of two causes of one cost is reported.
        place: what is judged by `cost`, `when` and `shows` (`places.py`): "line", "function", or "" for a
            cause that a question's own code finds.
        cost: classes of the operators whose time counts; `also`: those that cost less, too.
        when: conditions over the facts of a place; `shows`: facts by the names of fields of the title.
        functions: functions outside frameworks whose time is the cost (`questions/functions.py`).
        least_share: of the time in operators; `least_cost` and `least_calls` of the place.
        claims: what no later cause explains: "nodes", their "line", their "function", or "nothing".
        least: lowest severity; `most`: highest.
    """

    key: str
    id: str
    title: str
    advice: str
    misleads: str = ""
    assumes: str = ""
    link: str = ""
    rank: int = 0
    place: str = ""
    cost: str = ""
    also: str = ""
    when: tuple[str, ...] = ()
    shows: Mapping[str, str] = field(default_factory=dict)
    functions: tuple[str, ...] = ()
    least_share: float = 0.1
    least_cost: int = 0
    least_calls: int = 0
    claims: str = "nodes"
    least: str = "info"
    most: str = "high"


@functools.cache
def entries() -> Mapping[str, Entry]:
    """Return the causes by their keys, in the order in which they explain a cost."""
    found: dict[str, Entry] = {}
    for name in _FILES:
        for key, content in _read(f"{name}.toml").items():
            found[key] = _entry(key, content, found)
    return found


@functools.cache
def keys_of_functions() -> Mapping[str, str]:
    """Return the key of the entry about each function that has one."""
    return {name: key for key, entry in entries().items() for name in entry.functions}


@functools.cache
def operators(classes: str) -> frozenset[str]:
    """Return the full names of the operators of some classes.

    Args:
        classes: names of classes, joined by spaces.
    """
    table = _classes()
    return frozenset(name for each in classes.split() for name in _names(table, each))


def _entry(key: str, content: dict[str, Any], before: Mapping[str, Entry]) -> Entry:
    """Return an entry; `like` names an earlier one that has the fields it lacks."""
    like = content.pop("like", "")
    inherited = (
        {}
        if not like
        else {name: getattr(before[like], name) for name in Entry.__dataclass_fields__}
    )
    for name in ("when", "functions"):
        if name in content:
            content[name] = tuple(content[name])
    texts = {name: " ".join(value.split()) for name, value in content.items() if _is_text(value)}
    return Entry(**{**inherited, **content, **texts, "key": key, "rank": len(before)})


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _names(table: Mapping[str, str], name: str) -> set[str]:
    found: set[str] = set()
    for each in table[name].split():
        if each.startswith("@"):
            found |= _names(table, each[1:])
            continue
        full = each if "::" in each else _TORCH + each
        found |= {full[:-1], full[:-1] + "_"} if full.endswith("~") else {full}
    return found


@functools.cache
def _classes() -> Mapping[str, str]:
    return _read(_OPERATORS)


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(resources.files(__name__).joinpath(name).read_text(encoding="utf-8"))
