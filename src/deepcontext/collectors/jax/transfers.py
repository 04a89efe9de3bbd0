"""Where a jax program waits for the device and copies to and from it, by Python line.

Wraps the few Python-visible functions that all of jax uses. Copies inside a jitted call belong to
the call and are not shown separately, except for the size of its arguments that come from the host.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from deepcontext import _native

if TYPE_CHECKING:
    from deepcontext.collectors.jax.names import Found, Names

TO_HOST = "jax: copy to host"
TO_DEVICE = "jax: copy to device"
WAIT = "jax: wait for the device"


class TransferHooks:
    """Puts waits and copies into the tree."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._replacements: list[tuple[Found, object]] = []
        self._array_type: object = None

    def install(self) -> None:
        """Wrap the functions that exist."""
        value = self._names.find("array_value")
        if value is not None and isinstance(value.value, property):
            timed = _timed_value(value.value)
            value.replace(timed)
            self._replacements.append((value, timed))
        array_type = self._names.find("array_type")
        if array_type is not None:  # numpy.asarray on the CPU calls no Python function of jax
            refusal = _native.jax_hook_buffer(array_type.value)
            if refusal:
                self._names.lose("array_type", refusal)
            self._array_type = array_type.value
        for what in ("array_wait", "arrays_wait"):
            wait = self._names.find(what)
            if wait is not None:
                self._replacements.append((wait, wait.watch(_before_wait, _after_wait)))
        put = self._names.find("device_put")
        if put is not None:
            self._replacements.append((put, put.watch(_before_put, _after_put)))
        # jax needs numpy, and newer versions wrap its arrays in another type.
        wrapper = getattr(sys.modules.get("jax._src.literals"), "TypedNdArray", None)
        _native.jax_watch_host_arrays(sys.modules["numpy"].ndarray, wrapper)
        result = self._names.find("put_result")
        if result is not None:
            self._replacements.append((result, result.watch(None, _note_result)))

    def uninstall(self) -> None:
        """Put everything back."""
        _native.jax_watch_host_arrays(None, None)
        for found, replacement in reversed(self._replacements):
            found.restore(replacement)
        self._replacements.clear()
        if self._array_type is not None:
            _native.jax_unhook_buffer(self._array_type)
            self._array_type = None


def _timed_value(original: property) -> property:
    get = _native.watched_call(original.fget, _before_value, _after_value)
    return property(get, original.fset, original.fdel, original.__doc__)


def _before_value(array: Any) -> int:
    if getattr(array, "_npy_value", None) is not None:  # copied before: nothing happens
        return 0
    return _native.jax_enter_span("copy", TO_HOST)


def _after_value(token: int, _result: object, array: Any) -> None:
    _native.jax_leave_span(token, array.nbytes if token else 0)


def _before_wait(*_arguments: object) -> int:
    return _native.jax_enter_span("marker", WAIT)


def _after_wait(token: int, *_others: object) -> None:
    _native.jax_leave_span(token, 0)


def _before_put(*_arguments: object) -> int:
    return _native.jax_enter_span("copy", TO_DEVICE)


def _after_put(token: int, result: object, *arguments: object) -> None:
    _native.jax_leave_span(token, _size_bytes(arguments) if token else 0)
    _native.jax_note_copied(result)


def _note_result(_token: None, result: object, *_arguments: object) -> None:
    """Note the results of `jax.device_put`, which are new arrays that wrap the copied arrays."""
    _native.jax_note_copied(result)


def _size_bytes(arguments: tuple[Any, ...]) -> int:
    """Return the size of what is copied; 0 if it is not known."""
    buffers = arguments[2] if len(arguments) > 2 else ()  # noqa: PLR2004  (aval, sharding, buffers, ..)
    try:
        # Older versions of jax wrap host arrays in a type without a size, whose `val` has one.
        return sum(int(getattr(getattr(buffer, "val", buffer), "nbytes", 0)) for buffer in buffers)
    except Exception:  # noqa: BLE001  the program's copy has succeeded and must not fail here
        return 0
