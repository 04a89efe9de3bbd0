"""Call back when the program has imported a module, without importing it ourselves.

Touches `sys.meta_path` until the module was loaded or the hook is cancelled, and nothing after.
The module's own loader runs unchanged; its spec and loader are the genuine ones.
"""

from __future__ import annotations

import sys
from importlib import _bootstrap
from importlib.machinery import ModuleSpec, PathFinder
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType


class ImportHook:
    """Calls `on_import()` once, right after `module` was loaded completely."""

    def __init__(
        self, module: str, on_import: Callable[[], None], on_failure: Callable[[str], None]
    ) -> None:
        """Keep whom to tell.

        Args:
            module: name of a top-level module.
            on_import: what it raises does not reach the program that imports the module.
            on_failure: told what `on_import` raised: its type and its message.
        """
        self._module = module
        self._on_import = on_import
        self._on_failure = on_failure

    def install(self) -> None:
        """Wait for the module, or call back now when it is loaded already."""
        loaded = sys.modules.get(self._module)
        if loaded is not None and _is_being_loaded(loaded):
            # Another thread is past asking for a loader: wait as an import statement would.
            _bootstrap._lock_unlock_module(self._module)  # type: ignore[attr-defined]  # noqa: SLF001
            loaded = sys.modules.get(self._module)
        if loaded is not None and not _is_being_loaded(loaded):
            self._tell()
            return
        sys.meta_path.insert(0, self)

    def cancel(self) -> None:
        """Stop waiting."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Let the other finders find the module, and watch its loader do its work."""
        if name != self._module or path is not None:
            return None
        self.cancel()
        spec = _find_elsewhere(name, target)
        loader = spec.loader if spec else None
        if spec is None or loader is None or not hasattr(loader, "exec_module"):
            self.install()
            return spec
        load = loader.exec_module

        def load_and_tell(module: ModuleType) -> None:
            # The instance attribute below goes: the class's method is back. Another hook that waits
            # for the same module may have put its own over this one, and taken it away.
            vars(loader).pop("exec_module", None)
            try:
                load(module)
            except BaseException:
                sys.meta_path.insert(0, self)  # it may be imported again
                raise
            # Now it is loaded; the import machinery says so only after we return, and until then
            # an `import torch` of any other thread waits for this one.
            _mark_loaded(module)
            self._tell()

        try:
            loader.exec_module = load_and_tell  # type: ignore[method-assign]
        except AttributeError:  # a loader with slots or of C type
            return spec
        return spec

    def _tell(self) -> None:
        try:
            self._on_import()
        except Exception as error:  # noqa: BLE001  a fault of ours is never the program's
            self._on_failure(f"{type(error).__name__}: {error}")


def _find_elsewhere(name: str, target: ModuleType | None) -> ModuleSpec | None:
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        spec: ModuleSpec | None = find(name, None, target) if find else None
        if spec is not None:
            return spec
    return PathFinder.find_spec(name)


def _is_being_loaded(module: ModuleType) -> bool:
    spec = getattr(module, "__spec__", None)
    return bool(getattr(spec, "_initializing", False))


def _mark_loaded(module: ModuleType) -> None:
    spec: Any = getattr(module, "__spec__", None)
    if hasattr(spec, "_initializing"):
        spec._initializing = False  # noqa: SLF001  as importlib does a moment later
