"""Call back when the program has loaded a module; never import the module.

Stays on `sys.meta_path` until the module is loaded or the hook is cancelled, because programs ask
for a module's spec, perhaps several times, before they import it, and failed imports are tried
again. The module gets its genuine spec and loader, and the loader runs unchanged.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from importlib import _bootstrap
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from deepcontext import _native
from deepcontext.profiler.format.own_os import os
from deepcontext.profiler.recording import clock, operations

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import FunctionType, ModuleType

Method = TypeVar("Method", bound="Callable[..., object]")

# Of another thread that imports the module: it may wait for what the calling thread does.
_LONGEST_WAIT_S: Final = 10.0
_BETWEEN_LOOKS_S: Final = 0.001


def _left_out_of_tracebacks(method: Method) -> Method:
    """Give `method` the file name by which the interpreter drops the import system's frames."""
    function = cast("FunctionType", method)
    function.__code__ = function.__code__.replace(co_filename="<frozen importlib._bootstrap>")
    return method


class ImportHook:
    """Calls `on_import()` once, right after `module` was loaded completely.

    Any thread may call any method.
    """

    def __init__(
        self, module: str, on_import: Callable[[], None], on_failure: Callable[[str], None]
    ) -> None:
        """Remember the callbacks.

        Args:
            module: its full name.
            on_import: its exceptions do not reach the program that imports the module.
            on_failure: called with the type and message of what `on_import` raised.
        """
        self.module = module
        self.is_late = False  # `notice` made the call, not the import
        self.has_missed = False  # the module was loaded, but the wait ended without a call
        self._on_import = on_import
        self._on_failure = on_failure
        self._is_waiting = False
        self._pid = os.getpid()
        self._asking: set[int] = set()  # threads inside `find_spec`
        self._loading: set[int] = set()  # threads that load the module

    def install(self) -> None:
        """Wait for the module, or call back now if it is loaded already."""
        self._is_waiting = True
        sys.meta_path.insert(0, self)
        self._wait_for_import()
        loaded = sys.modules.get(self.module)
        if loaded is not None and _is_lazy(loaded):
            self._watch(object.__getattribute__(loaded, "__spec__").loader)
        elif self._is_unnoticed():
            self._call_back()

    def cancel(self) -> None:
        """Stop waiting for the module. No callback is running, because each is an operation."""
        self.has_missed = self.has_missed or self._is_unnoticed()
        self._stop_waiting()

    def notice(self) -> None:
        """Call back now if the module was loaded in a way that the hook did not see."""
        if self._is_unnoticed():
            self.is_late = self._call_back()

    @_left_out_of_tracebacks
    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Let the other finders find the module, and watch its loader."""
        thread = threading.get_ident()
        # Other finders may ask all finders, this one included.
        if name != self.module or thread in self._asking or not self._waits():
            return None
        self._asking.add(thread)
        try:
            spec: ModuleSpec | None = _bootstrap._find_spec(name, path, target)  # type: ignore[attr-defined]  # noqa: SLF001
        finally:
            self._asking.discard(thread)
        if spec is not None:
            self._watch(spec.loader)
        return spec

    def _watch(self, loader: Any) -> None:
        # A class that is used as a loader also loads other modules. A loader with slots or of a C
        # type accepts no attribute. `notice` handles both cases.
        load = getattr(loader, "exec_module", None)
        if load is None or isinstance(loader, type) or _is_watched_by(self, load):
            return
        if not self._waits():
            return
        with contextlib.suppress(AttributeError, TypeError):
            loader.exec_module = _WatchedLoad(self, loader, load)

    def _stop_waiting(self) -> None:
        self._is_waiting = False
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(self)

    def _waits(self) -> bool:
        return self._is_waiting and os.getpid() == self._pid  # a forked child has no session

    def _is_unnoticed(self) -> bool:
        module = sys.modules.get(self.module)
        return (
            module is not None
            and self._waits()
            and not self._loading
            and not _is_lazy(module)
            and not _is_being_loaded(module)
        )

    def _on_loaded(self) -> None:
        # A module that the program loads by hand may not be in `sys.modules` yet.
        if self._waits() and sys.modules.get(self.module) is not None:
            self._call_back()

    def _wait_for_import(self) -> None:
        """Wait until no other thread imports the module, which may have asked for its loader already."""
        end = clock.monotonic_s() + _LONGEST_WAIT_S
        while self._is_imported_elsewhere() and clock.monotonic_s() < end:
            time.sleep(_BETWEEN_LOOKS_S)

    def _is_imported_elsewhere(self) -> bool:
        module = sys.modules.get(self.module)
        if module is not None and (_is_lazy(module) or not _is_being_loaded(module)):
            return False
        lock = _bootstrap._module_locks.get(self.module, lambda: None)()  # type: ignore[attr-defined]  # noqa: SLF001
        owner = getattr(lock, "owner", None)
        # A thread that waits for this operation cannot go on with its import.
        is_own = owner == threading.get_ident() or _native.waits_for_operation(owner or 0)
        return owner is not None and not is_own

    def _call_back(self) -> bool:
        """Stop waiting and call, unless another thread has; return whether this call did."""
        # importlib marks the module only after the loader returns; until then an `import` of the module
        # on another thread waits for this thread.
        _mark_loaded(sys.modules[self.module])
        # Debuggers and coverage do not trace it.
        return bool(_native.without_tracing(lambda: operations.run(self._call_once)))

    def _call_once(self) -> bool:
        if not self._is_waiting:
            return False
        self._stop_waiting()
        try:
            self._on_import()
        except Exception as error:  # noqa: BLE001  a fault of the profiler must not reach the program
            self._on_failure(f"{type(error).__name__}: {error}")
        return True


class _WatchedLoad:
    """`exec_module` of one loader while a hook waits for the module.

    It is an attribute of the loader, and is removed before the module's first line runs.
    """

    def __init__(self, hook: ImportHook, loader: Any, load: Callable[[ModuleType], object]) -> None:
        self.hook = hook
        self.load = load
        self._loader = loader
        self._previous = vars(loader).get("exec_module")  # another hook's, for example

    @_left_out_of_tracebacks
    def __call__(self, module: ModuleType) -> None:
        if getattr(module, "__name__", "") != self.hook.module:  # a loader of many modules
            self.load(module)
            return
        thread = threading.get_ident()
        self._take_back()
        self.hook._loading.add(thread)  # noqa: SLF001  one concept in two classes
        try:
            self.load(module)
            self.hook._on_loaded()  # noqa: SLF001
        except BaseException:
            self.hook._watch(self._loader)  # noqa: SLF001  it may be loaded again
            raise
        finally:
            self.hook._loading.discard(thread)  # noqa: SLF001

    def __eq__(self, other: object) -> bool:
        """Loaders are compared by their attributes."""
        return isinstance(other, _WatchedLoad) and other.hook is self.hook

    def __hash__(self) -> int:
        return hash(self.hook)

    def _take_back(self) -> None:
        if vars(self._loader).get("exec_module") is not self:
            return  # another tool has replaced this wrapper
        if self._previous is None:
            del self._loader.exec_module
        else:
            self._loader.exec_module = self._previous


def _is_watched_by(hook: ImportHook, load: object) -> bool:
    while isinstance(load, _WatchedLoad):
        if load.hook is hook:
            return True
        load = load.load
    return False


def _is_lazy(module: ModuleType) -> bool:
    """Return whether `importlib.util.LazyLoader` will load the module when it is first used."""
    lazy = getattr(sys.modules.get("importlib.util"), "_LazyModule", None)
    return lazy is not None and type(module) is lazy


def _is_being_loaded(module: ModuleType) -> bool:
    spec = getattr(module, "__spec__", None)
    return bool(getattr(spec, "_initializing", False))


def _mark_loaded(module: ModuleType) -> None:
    if _is_lazy(module):
        # Reading its attributes takes a lock that this thread holds, and the call may use threads.
        module.__class__ = type(sys)
    spec: Any = getattr(module, "__spec__", None)
    if hasattr(spec, "_initializing"):
        spec._initializing = False  # noqa: SLF001  as importlib does a moment later
