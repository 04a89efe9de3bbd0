"""Names of objects: the variable, attribute or key that refers to them.

Runs no code of the program: attributes are read through the descriptors of Python's own types. Does not
search for the objects (`holders.py`).
"""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any, Final

from deepcontext import _native

_MOST_REFERRERS: Final = 6
_MOST_OUTER: Final = 32
_OWN_FILES: Final = str(Path(__file__).parent)
_MRO: Final = type.__dict__["__mro__"]
_NAMESPACE: Final = type.__dict__["__dict__"]
_NAME: Final = type.__dict__["__name__"]


def kinds_of(value: object) -> tuple[type, ...]:
    """Return the type of a value and its bases; `isinstance` would ask the value's own `__class__`."""
    kinds: tuple[type, ...] = _MRO.__get__(type(value))
    return kinds


def type_name(value: object) -> str:
    """Return the name of a value's type, whatever its metaclass says."""
    return str(_NAME.__get__(type(value)))


def attributes(value: object) -> dict[str, Any]:
    """Return the attributes in an object's `__dict__` and slots; empty for objects without."""
    found: dict[str, Any] = {}
    for base in kinds_of(value):
        for name, descriptor in list(_NAMESPACE.__get__(base).items()):
            if name == "__dict__" and isinstance(descriptor, types.GetSetDescriptorType):
                held = descriptor.__get__(value)
                found.update(held if type(held) is dict else {})
            elif isinstance(descriptor, types.MemberDescriptorType) and base is not object:
                try:
                    found.setdefault(name, descriptor.__get__(value))
                except AttributeError:  # a slot that is not set
                    continue
    return found


class HolderNames:
    """Where objects are kept: `list 'kept' of train.py`, `dict Trainer.cache`."""

    def __init__(self, objects: list[Any], longest_s: float) -> None:
        self._objects = objects
        self.is_complete = True  # whether the searches went on to their ends
        self._modules = {
            id(vars(module)): _module_name(name, module)
            for name, module in list(sys.modules.items())
            if type(module) is types.ModuleType
        }
        self._names, outer = self._search(objects, longest_s)
        # One more level: an object's own dict, a closure's cell, a dict of lists.
        targets = [each for rows in outer.values() for each in rows][:_MOST_OUTER]
        names, _ = self._search(targets, longest_s) if targets else ({}, {})
        place = {id(each): position for position, each in enumerate(targets)}
        for position, rows in outer.items():
            for each in rows:
                name = names.get(place.get(id(each), -1))
                if name and position not in self._names:
                    is_cell = type(each) is types.CellType
                    self._names[position] = name if is_cell else f"inside {name}"

    def of(self, position: int) -> str:
        """Return the type and name of an object of the question; "" where nothing names it."""
        value = self._objects[position]
        name = self._names.get(position, "")
        if type(value) is types.FrameType:
            file = value.f_code.co_filename
            return (
                f"a traceback, with the frame of '{value.f_code.co_qualname}' ({file})"
                if name
                else ""
            )
        return f"{type_name(value)} {name}" if name else ""

    def _search(
        self, targets: list[Any], longest_s: float
    ) -> tuple[dict[int, str], dict[int, list[Any]]]:
        """Return the names of targets by position, and the objects that hold those without a name."""
        names: dict[int, str] = {}
        outer: dict[int, list[Any]] = {}
        rows, is_complete = _native.object_referrers(targets, _MOST_REFERRERS, longest_s)
        self.is_complete &= is_complete
        for position, referrer in rows:
            name = self._name_in(targets[position], referrer)
            if name:
                names.setdefault(position, name)
            elif referrer is not self._objects:
                outer.setdefault(position, []).append(referrer)
        for position, code, variable in _native.holding_variables(targets):
            if not code.co_filename.startswith(_OWN_FILES):
                names.setdefault(position, f"'{variable}' in {code.co_qualname}")
        return names, {position: rows for position, rows in outer.items() if position not in names}

    def _name_in(self, target: object, referrer: object) -> str:
        kinds = kinds_of(referrer)
        if dict in kinds:
            module = self._modules.get(id(referrer))
            return f"'{_key_of(target, referrer)}' of {module}" if module else ""  # type: ignore[arg-type]
        if kinds[0] is types.TracebackType:
            return "that an exception keeps"
        if kinds[0] in (types.FunctionType, types.CellType) or list in kinds or tuple in kinds:
            return ""
        key = _key_of(target, attributes(referrer))
        return f"{type_name(referrer)}.{key}" if key else ""


# `multiprocessing` gives the main module a second name, in torch's processes, too.
_MAIN: Final = ("__main__", "__mp_main__")


def _key_of(value: object, holder: dict[Any, Any]) -> str:
    for key, held in list(dict.items(holder)):
        if held is value and isinstance(key, str):
            return str(key)
    return ""


def _module_name(name: str, module: types.ModuleType) -> str:
    # Python takes `__file__` from a script that has ended, before functions of atexit run.
    loader = vars(module).get("__loader__")
    file = vars(module).get("__file__") or getattr(loader, "path", "")
    return str(file).rpartition("/")[2] if name in _MAIN and file else name
