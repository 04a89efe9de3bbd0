"""How the cache of a jitted function sees the arguments of a call, and how two calls differ.

Runs only after a compilation, so it may cost microseconds an argument. Does not keep arguments.
"""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from typing import Any

from deepcontext.collectors.jax.functions import parameters_of, shortened

_MOST_LEAVES = 2000
_SHORT_TYPES = {
    "float": "f", "int": "s", "uint": "u", "bfloat": "bf", "complex": "c",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Arguments:
    """What chooses the compiled program among one call's arguments.

    Attributes:
        arrays: type by place, ``params['w']`` -> ``f32[8,4]``; what is traced.
        statics: value by name, shortened; what is compiled in.
        values: values of Python numbers, which are traced unless jax treats them as static.
    """

    arrays: dict[str, str]
    statics: dict[str, str]
    values: dict[str, str]

    def text(self, limit: int = 3) -> str:
        """Return the first few types as one short text: ``(f32[8,4], s32[])``."""
        shown = list(self.arrays.values())[:limit]
        shown += [f"{name}={value}" for name, value in self.statics.items()][:limit]
        more = ", ..." if len(self.arrays) > limit else ""
        return f"({', '.join(shown)}{more})"


def describe(function: Any, positional: list[Any], keywords: tuple[str, ...]) -> Arguments:
    """Describe a call; the values of `keywords` are the last of `positional`."""
    count = len(positional) - len(keywords)
    names = _parameter_names(function, count)
    named = dict(zip([*names, *keywords], positional, strict=True))
    static = _static_names(function, names)
    arrays: dict[str, str] = {}
    statics = parameters_of(function)
    values: dict[str, str] = {}
    for name, value in named.items():
        if name in static:
            statics[name] = shortened(value)
            continue
        for place, leaf in _leaves(name, value):
            arrays[place] = _type_text(leaf)
            if isinstance(leaf, bool | int | float | complex | str):
                values[place] = shortened(leaf)
    return Arguments(arrays, statics, values)


def differences(before: Arguments, after: Arguments) -> list[str]:
    """Say what changed, one sentence a change; empty if nothing changed."""
    changes = [
        f"static argument '{name}' changed from {old} to {after.statics[name]}"
        for name, old in before.statics.items()
        if name in after.statics and after.statics[name] != old
    ]
    changes += [
        f"{_argument(place)} changed from {old} to {after.arrays[place]}"
        for place, old in before.arrays.items()
        if place in after.arrays and after.arrays[place] != old
    ]
    gone = [place for place in before.arrays if place not in after.arrays]
    new = [place for place in after.arrays if place not in before.arrays]
    if gone or new:
        changes.append(
            f"the structure of the arguments changed: added {_places(new)}, removed {_places(gone)}"
        )
    if not changes:
        changes += [
            f"static argument '{place}' changed from {old} to {after.values[place]}"
            for place, old in before.values.items()
            if place in after.values and after.values[place] != old
        ]
    return changes


def nearest_differences(earlier: list[Arguments], after: Arguments) -> list[str]:
    """Say what changed since the most similar of earlier calls, of equally similar ones the latest."""
    nearest = min(
        reversed(earlier), key=lambda before: (len(differences(before, after)), _far(before, after))
    )
    return differences(nearest, after)


def _far(before: Arguments, after: Arguments) -> int:
    """Return how unlike the changed types are."""
    pairs = [(old, after.arrays.get(place, old)) for place, old in before.arrays.items()]
    return sum(_far_types(old, new) for old, new in pairs if old != new)


def _far_types(old: str, new: str) -> int:
    """Return the distance of two types: other kinds, element types, ranks, or only other sizes."""
    kinds = ("[" in old) != ("[" in new)
    elements = old.partition("[")[0] != new.partition("[")[0]
    ranks = old.count(",") != new.count(",") or ("[]" in old) != ("[]" in new)
    weakly = old.endswith("typed") != new.endswith("typed")
    return 16 * kinds + 8 * elements + 4 * ranks + 2 * weakly + 1


def _argument(place: str) -> str:
    """Return ``argument 'x'``, or ``argument 0`` for an argument without a name."""
    return place if place.startswith("argument ") else f"argument '{place}'"


def _places(places: list[str]) -> str:
    if not places:
        return "nothing"
    more = f" and {len(places) - 3} more" if len(places) > 3 else ""  # noqa: PLR2004
    return ", ".join(f"'{place}'" for place in places[:3]) + more


def _parameter_names(function: Any, count: int) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        parameters = ()  # type: ignore[assignment]
    names = [
        parameter.name
        for parameter in parameters
        if parameter.kind in {parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD}
    ][:count]
    return names + [f"argument {position}" for position in range(len(names), count)]


def _static_names(function: Any, names: list[str]) -> set[str]:
    info = getattr(function, "_jit_info", None)  # without it, only changed values are known
    numbers = getattr(info, "static_argnums", ()) or ()
    by_name = getattr(info, "static_argnames", ()) or ()
    return {names[number] for number in numbers if -len(names) <= number < len(names)} | set(
        by_name
    )


def _leaves(name: str, value: Any) -> list[tuple[str, Any]]:
    trees = sys.modules["jax"].tree_util
    try:
        leaves, _ = trees.tree_flatten_with_path(value)
        return [(name + trees.keystr(path), leaf) for path, leaf in leaves[:_MOST_LEAVES]]
    except Exception:  # noqa: BLE001  a user's container may raise; its type is still known
        return [(name, value)]


def _type_text(leaf: Any) -> str:
    aval = getattr(leaf, "aval", leaf)
    shape, dtype = getattr(aval, "shape", None), getattr(aval, "dtype", None)
    if shape is None or dtype is None:
        return type(leaf).__name__
    text = f"{_dtype_text(dtype)}[{','.join(str(size) for size in shape)}]"
    if getattr(aval, "weak_type", False):
        text += " weakly typed"
    sharding = getattr(leaf, "sharding", None)
    devices = len(getattr(sharding, "device_set", ()) or ())
    if devices > 1:
        text += f" on {devices} devices ({getattr(sharding, 'spec', sharding)})"
    return text


def _dtype_text(dtype: Any) -> str:
    name = str(dtype)
    letters = name.rstrip("0123456789")
    return _SHORT_TYPES[letters] + name[len(letters) :] if letters in _SHORT_TYPES else name
