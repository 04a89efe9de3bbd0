"""Names of `torch.nn.Module` instances: ``Linear 'encoder.layers.0.linear1'``.

The native core recognises a module call by the `self` in its frame and knows only the type. Soon
after the first call of a new module, the core passes the modules that are being called on each
thread, outermost first. A module's name is its path below the outermost module known to contain it.
Holds only weak references, and runs no code of the modules: modules are compared by identity, and
their parts are read from the attributes in which `torch.nn.Module` keeps them.
"""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from deepcontext import _native

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Place(NamedTuple):
    """Where a module was found: its path below a root, and the root's address."""

    path: str
    root: int


class ModuleNames:
    """Gives names to the module instances of one session."""

    def __init__(self) -> None:
        self._places: dict[int, _Place] = {}
        self._references: dict[int, weakref.ref[Any]] = {}

    def start(self) -> None:
        """Recognise module calls from now on."""
        module_type = sys.modules["torch"].nn.Module
        call = module_type._wrapped_call_impl  # noqa: SLF001  the frame every module call has
        _native.add_code_rule(
            "suffix", "torch/nn/modules/module.py", call.__qualname__, "module_call", ""
        )
        _native.set_module_call(call.__code__)
        _native.watch_module_calls(call)
        _native.set_module_resolver(self._name_stacks)

    def stop(self) -> None:
        """Forget all instances."""
        _native.unwatch_module_calls()
        _native.clear_modules()
        self._references.clear()
        self._places.clear()

    def settle(self) -> None:
        """Name the modules on a stack, then the other living ones; forget the dead."""
        if not _native.unnamed_modules():
            return
        _native.resolve_modules()
        unnamed = set(_native.unnamed_modules()).difference(self._places)
        if not unnamed:
            return
        module_type = sys.modules["torch"].nn.Module
        alive = [m for m in _native.objects_at(list(unnamed)) if _is_a(m, module_type)]
        for module in sorted(alive, key=_size, reverse=True):
            if id(module) not in self._places:
                self._name_below(module)
        for address in unnamed.difference(map(id, alive)):
            _native.forget_module(address)

    def _name_stacks(self, stacks: list[list[object]]) -> None:
        for stack in stacks:
            for depth, module in enumerate(stack):
                if id(module) not in self._places:
                    self._name_grown(stack[:depth])
                if id(module) not in self._places:
                    self._name_below(module)

    def _name_grown(self, modules: list[object]) -> None:
        """Name parts that were added to modules after the modules got their names."""
        for outer in modules:
            base = self._places[id(outer)]
            for path, module in _walk(outer):
                if id(module) not in self._places:
                    self._name(module, _Place(_join(base.path, path), base.root))

    def _name_below(self, root: object) -> None:
        """Name a module that no known module contains, and all modules inside it."""
        parts = list(_walk(root))
        addresses = {id(module) for _, module in parts}
        for path, module in parts:
            known = self._places.get(id(module))
            if known is None or known.root in addresses:
                self._name(module, _Place(path, id(root)))

    def _name(self, module: object, place: _Place) -> None:
        address = id(module)
        if address not in self._references:
            self._references[address] = weakref.ref(module, lambda _: self._forget(address))
        self._places[address] = place
        kind = type(module).__name__
        _native.name_module(address, f"{kind} '{place.path}'" if place.path else kind)

    def _forget(self, address: int) -> None:
        self._places.pop(address, None)
        self._references.pop(address, None)
        _native.forget_module(address)


def _is_a(value: object, kind: type) -> bool:
    """`isinstance` without reading the value's `__class__`, for which a proxy runs code."""
    return issubclass(type(value), kind)


def _parts(module: object) -> Iterator[tuple[str, object]]:
    children = getattr(module, "__dict__", {}).get("_modules") or {}
    return ((name, child) for name, child in list(children.items()) if child is not None)


def _walk(root: object) -> Iterator[tuple[str, object]]:
    """Yield `root` and every module below it once, with its path, containers first."""
    seen: set[int] = set()
    pending: list[tuple[str, object]] = [("", root)]
    while pending:
        path, module = pending.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        yield path, module
        parts = [(_join(path, name), child) for name, child in _parts(module)]
        pending.extend(reversed(parts))


def _join(outer: str, inner: str) -> str:
    return f"{outer}.{inner}" if outer and inner else outer or inner


def _size(module: object) -> int:
    return sum(1 for _ in _walk(module))
