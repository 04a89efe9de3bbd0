"""Calls of jitted functions: a native hook in the call slot of every `PjitFunction`.

The hook replaces the vectorcall slot; the object keeps its type and identity. Existing objects are
found once, new objects come from jax's factory. Without a factory, calls are observed through
`sys.monitoring` (Python 3.12 and newer), or only counted, by jax's post-call hook.
"""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Any

from deepcontext import _native
from deepcontext.collectors.jax import functions
from deepcontext.collectors.jax.names import CALLBACKS

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType

    from deepcontext.collectors.jax.names import Found, Names

_TOOL_NAME = "deepcontext"
_LAUNCHER = "_get_jaxpr_as_fun."  # jitted by jax itself to run a traced function


class DispatchHook:
    """Sees every call of a jitted function while it is installed."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._factory: Found | None = None
        self._replacements: list[tuple[Found, object]] = []
        self._fallback: _MonitoringCalls | _PostHook | None = None
        self._type: type | None = None
        self._has_frozen = False

    @property
    def missed(self) -> str:
        """Which functions are not seen, and why; "" for none."""
        if not self._has_frozen:
            return ""
        return (
            "the program called gc.freeze(), which hides objects, before the profiler started: launches of "
            "functions that were jitted until then are missing"
        )

    @property
    def way(self) -> str:
        """How calls are seen: "vectorcall", "sys.monitoring", "post_hook" or "none"."""
        if self._fallback is not None:
            return self._fallback.way
        return "none" if self._factory is None else "vectorcall"

    def install(self) -> None:
        """Hook the jitted functions that exist and those made later."""
        self._has_frozen = gc.get_freeze_count() > 0
        found_type = self._names.find("jit_type")
        self._type = found_type.value if found_type else _type_of_a_jitted_function()
        self._factory = self._names.find("jit_factory")
        refusal = self._hook_existing() if self._factory else ""
        if refusal:
            self._names.lose("jit_factory", refusal)
            self._factory = None
        if self._factory is None:
            self._fall_back()
        else:
            self._watch(self._factory, None, _hook_made)
        infer, execute = self._names.find("infer_params"), self._names.find("execute")
        are_told = infer is not None and execute is not None
        _native.jax_set_marks(are_told=are_told, is_jit_disabled=_is_jit_disabled)
        if infer is not None and execute is not None:  # one without the other would miscount
            self._watch(infer, _native.jax_mark_slow, None)
            self._watch(execute, _before_execution, _after_execution)
        for callback in map(self._names.find, CALLBACKS):
            if callback is not None:
                self._watch(callback, _native.jax_enter_callback, _native.jax_leave_callback)

    def uninstall(self) -> None:
        """Leave every object as it was."""
        for found, replacement in self._replacements:
            found.restore(replacement)
        self._replacements.clear()
        if self._fallback is not None:
            self._fallback.stop()
            self._fallback = None
        _native.jax_set_marks(are_told=False, is_jit_disabled=None)
        if self._factory is not None:
            for function in self._existing():
                _native.jax_unhook(function)

    def _watch(
        self, found: Found, before: Callable[..., object] | None, after: Callable[..., None] | None
    ) -> None:
        self._replacements.append((found, found.watch(before, after)))

    def _existing(self) -> list[Any]:
        return [] if self._type is None else _native.objects_of(self._type)

    def _hook_existing(self) -> str:
        for function in self._existing():
            refusal = _native.jax_hook(function, function_id(function))
            if refusal:
                return refusal
        return ""

    def _fall_back(self) -> None:
        if sys.version_info >= (3, 12) and self._type is not None:
            monitoring = _MonitoringCalls(self._type)
            if monitoring.start():
                self._fallback = monitoring
                return
        hook = _PostHook()
        if hook.start():
            self._fallback = hook


def function_id(function: Any) -> int:
    """Return the native number of the function behind a jitted object."""
    wrapped = getattr(function, "__wrapped__", None)
    name = str(getattr(function, "__name__", "")) or type(function).__name__
    return _id_of(name, wrapped)


def _id_of(name: str, wrapped: Any) -> int:
    code = functions.code_of(wrapped)
    if wrapped is None:  # compiled ahead of time: the module's name
        name = name.removeprefix("jit_").removeprefix("jit(").removesuffix(")")
    if code is None or code.co_qualname.startswith(_LAUNCHER):
        return _native.jax_function(name, "", "", 0)
    shown = functions.shown_name(name, code)
    return _native.jax_function(
        name, code.co_qualname, code.co_filename, code.co_firstlineno, shown
    )


def _is_jit_disabled() -> bool:
    return bool(sys.modules["jax"].config.jax_disable_jit)


def _hook_made(_token: None, function: Any, name: str, fun: Any, *_rest: object) -> None:
    if function is not None:
        _native.jax_hook(function, _id_of(name, fun))


def _before_execution(program: Any, *_arguments: object) -> bool:
    """Return whether the execution is a call of its own."""
    if _native.jax_mark_launch():
        return False
    # Compiled ahead of time and with callbacks: no jitted object launches such a program.
    _native.jax_begin_call(program, _id_of(str(getattr(program, "name", "program")), None))
    return True


def _after_execution(is_call: bool, result: object, program: Any, *_arguments: object) -> None:  # noqa: FBT001
    if is_call:
        _native.jax_end_call(program, result is None)


def _type_of_a_jitted_function() -> type:
    return type(sys.modules["jax"].jit(lambda value: value))


class _MonitoringCalls:
    """Sees calls through sys.monitoring, which adds 125 ns to every call in the program."""

    way = "sys.monitoring"

    def __init__(self, jit_type: type) -> None:
        self._type = jit_type
        self._tool = -1

    def start(self) -> bool:
        monitoring = _monitoring()
        free = (tool for tool in (3, 4, 1) if monitoring.get_tool(tool) is None)
        self._tool = next(free, -1)
        if self._tool < 0:
            return False
        monitoring.use_tool_id(self._tool, _TOOL_NAME)
        events = monitoring.events
        monitoring.register_callback(self._tool, events.CALL, self._on_call)
        monitoring.register_callback(self._tool, events.C_RETURN, self._on_return)
        monitoring.register_callback(self._tool, events.C_RAISE, self._on_raise)
        monitoring.set_events(self._tool, events.CALL)  # implies C_RETURN and C_RAISE
        return True

    def stop(self) -> None:
        monitoring = _monitoring()
        monitoring.set_events(self._tool, 0)
        for event in (
            monitoring.events.CALL,
            monitoring.events.C_RETURN,
            monitoring.events.C_RAISE,
        ):
            monitoring.register_callback(self._tool, event, None)
        monitoring.free_tool_id(self._tool)

    def _on_call(self, _code: CodeType, _offset: int, called: object, _argument: object) -> None:
        if type(called) is self._type:
            _native.jax_begin_call(called, function_id(called))

    def _on_return(self, _code: CodeType, _offset: int, called: object, _argument: object) -> None:
        if type(called) is self._type:
            _native.jax_end_call(called, False)  # noqa: FBT003  native functions take no names

    def _on_raise(self, _code: CodeType, _offset: int, called: object, _argument: object) -> None:
        if type(called) is self._type:
            _native.jax_end_call(called, True)  # noqa: FBT003


def _monitoring() -> Any:
    return sys.__dict__["monitoring"]  # 3.12 and newer


class _PostHook:
    """Counts calls through jax's hook after a call: no times, and only calls of the fast path."""

    way = "post_hook"

    def __init__(self) -> None:
        self._state: Any = getattr(sys.modules.get("jax._src.api"), "_post_hook_state", None)

    def start(self) -> bool:
        if self._state is None or not hasattr(self._state, "set_global"):
            return False
        if self._state.get_global() is not None:
            return False  # debug_nans uses it
        self._state.set_global(self._after_call)
        return True

    def stop(self) -> None:
        self._state.set_global(None)

    @staticmethod
    def _after_call(function: Any, *_rest: object) -> None:
        _native.jax_count_call(function_id(function))
