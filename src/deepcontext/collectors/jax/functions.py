"""The program's function behind a jitted object, and the values that the function was made with.

Runs when an object is made or compiled. Reads attributes of the program's objects, so it expects any
exception.
"""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any, Final

_MOST_WRAPPERS: Final = 20
_LONGEST_VALUE: Final = 60
# The function of JAX that `jax.pmap` jits has the mapped function in its variable `fun`.
_OF_PMAP: Final = "_fun"
_PMAP: Final = "/jax/_src/pmap.py"


def code_of(function: Any) -> CodeType | None:
    """Return the code of the user's function; None for other callable objects."""
    try:
        code = getattr(_innermost(function), "__code__", None)
    except Exception:  # noqa: BLE001  an attribute of a user's object may raise anything
        return None
    return code if isinstance(code, CodeType) else None


def shown_name(name: str, code: CodeType) -> str:
    """Return the name of a function that JAX wraps in one of its own, otherwise the jitted name."""
    return code.co_name if name == _OF_PMAP else name


def made_with(jitted: Any) -> str:
    """Return the values that the user's function was made with: defaults and variables around it.

    Two functions of one definition that were made with other values do different things.
    """
    if _is_operation(jitted):
        return ""  # see `parameters_of`
    try:
        function = _innermost(jitted)
        values = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        values += [cell.cell_contents for cell in function.__closure__ or ()]
    except Exception:  # noqa: BLE001  no function, or a variable that is not set
        return ""
    return ", ".join(map(value_text, values))


def parameters_of(jitted: Any) -> dict[str, str]:
    """Return the parameters of an operation of JAX that is called outside of a jitted function.

    JAX compiles such an operation for each value of them: the size that `jnp.zeros` is asked for.
    """
    if not _is_operation(jitted):
        return {}
    parameters = _variables(jitted.__wrapped__).get("params")
    found = parameters if isinstance(parameters, dict) else {}
    return {name: value_text(value) for name, value in found.items() if value is not None}


def _is_operation(jitted: Any) -> bool:
    function = getattr(jitted, "__wrapped__", None)
    return isinstance(function, FunctionType) and hasattr(function, "_apply_primitive")


def value_text(value: object) -> str:
    """Return a short text that is equal for equal numbers, texts and tuples, and for one object."""
    parts = value if isinstance(value, tuple) else (value,)
    if all(isinstance(each, bool | int | float | complex | str | None) for each in parts) or (
        type(value).__module__.partition(".")[0] == "numpy" and not hasattr(value, "__array__")
    ):
        return shortened(value)
    return f"{type(value).__name__} at {id(value):#x}"


def shortened(value: object) -> str:
    """Return ``repr(value)``, cut where it is long."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  a user's __repr__
        text = f"a {type(value).__name__}"
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 3] + "..."


def _innermost(function: Any) -> Any:
    """Look through functools.wraps, functools.partial, bound methods and `jax.pmap`."""
    for _ in range(_MOST_WRAPPERS):
        inner = (
            getattr(function, "__wrapped__", None)
            or getattr(function, "func", None)
            or getattr(function, "__func__", None)
            or _mapped(function)
        )
        if inner is None:
            return function
        function = inner
    return function


def _mapped(function: Any) -> Any:
    if not isinstance(function, FunctionType) or function.__name__ != _OF_PMAP:
        return None
    if not function.__code__.co_filename.endswith(_PMAP):
        return None
    return getattr(_variables(function).get("fun"), "f", None)


def _variables(function: Any) -> dict[str, Any]:
    """Return the variables of the functions around a function that it uses."""
    names, cells = function.__code__.co_freevars, function.__closure__ or ()
    return {name: cell.cell_contents for name, cell in zip(names, cells, strict=True)}
