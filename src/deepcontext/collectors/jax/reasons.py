"""Why a function was compiled: its call, compared with the earlier calls that were compiled.

Keeps no program and no argument alive. Runs on the thread that compiles.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from deepcontext import _native
from deepcontext.collectors.jax import arguments as jax_arguments
from deepcontext.collectors.jax import functions
from deepcontext.collectors.shared.program_lock import ProgramLock

if TYPE_CHECKING:
    from deepcontext.collectors.jax.arguments import Arguments

_MOST_VARIANTS: Final = 64  # argument types remembered for one function


@dataclass(frozen=True, slots=True)
class JittedCall:
    """The jitted call that waits for its program."""

    function: Any
    name: str  # as shown
    traced_name: str  # JAX's own
    qualified_name: str
    file: str
    first_line: int
    arguments: Arguments | None


def waiting_call() -> JittedCall | None:
    """Return the user's jitted call that the calling thread compiles for."""
    calls = _native.jax_calls()
    if not calls:
        return None
    callable_, traced, name, qualified_name, file, first_line, positional, keywords = calls[-1]
    try:
        arguments = jax_arguments.describe(callable_, positional, keywords)
    except Exception:  # noqa: BLE001  an odd signature; the program is recorded without its arguments
        arguments = None
    return JittedCall(callable_, name, traced, qualified_name, file, first_line, arguments)


@dataclass(slots=True)
class _Made:
    """Earlier compilations of functions of one definition that were made with the same values."""

    made_with: str
    objects: list[weakref.ref[Any]] = field(default_factory=list)
    variants: list[Arguments] = field(default_factory=list)

    def is_in_use(self) -> bool:
        return any(reference() is not None for reference in self.objects)


@dataclass(slots=True)
class _Known:
    """Earlier compilations of the functions of one definition."""

    made: list[_Made] = field(default_factory=list)
    count: int = 0
    total_ns: int = 0

    def of(self, function: Any) -> _Made:
        """Return the compilations that one of a function repeats.

        A function that was made with other values is another one, unless it takes the place of one
        that nobody has any more: then it was made again, perhaps in a loop.
        """
        made_with = functions.made_with(function)
        same = next((each for each in self.made if each.made_with == made_with), None)
        if same is not None:
            return same
        unused = next((each for each in self.made if not each.is_in_use()), None)
        if unused is None and len(self.made) < _MOST_VARIANTS:
            self.made.append(_Made(made_with))
        found = unused or self.made[-1]
        found.made_with = made_with
        return found


class EarlierCompilations:
    """How often and for which arguments each function was compiled so far."""

    def __init__(self) -> None:
        self._lock = ProgramLock()
        self._known: dict[tuple[str, str, int], _Known] = {}

    def add(self, call: JittedCall | None, module: str, spent_ns: int) -> tuple[str, list[str]]:
        """Return the reason of one more compilation, and the changes since the most similar one."""
        key = (call.name, call.file, call.first_line) if call else (module, "", 0)
        with self._lock:
            known = self._known.setdefault(key, _Known())
            known.count += 1
            known.total_ns += spent_ns
            if call is None or call.arguments is None:
                return ("first" if known.count == 1 else "unknown"), []
            made = known.of(call.function)
            reason, changes = _compare(made, call.function, call.arguments)
            _remember(made, call)
            return reason, changes

    def by_function(self) -> list[dict[str, str | int]]:
        """Return number and time of the compilations of each function, in JSON types."""
        with self._lock:
            return [
                {"function": name, "file": file, "line": line, "compilations": known.count,
                 "compile_ns": known.total_ns}
                for (name, file, line), known in self._known.items()
            ]  # fmt: skip


def _remember(made: _Made, call: JittedCall) -> None:
    made.objects = [reference for reference in made.objects if reference() is not None]
    if len(made.objects) < _MOST_VARIANTS:
        made.objects.append(weakref.ref(call.function))
    if len(made.variants) < _MOST_VARIANTS and call.arguments is not None:
        made.variants.append(call.arguments)


def _compare(made: _Made, function: Any, arguments: Arguments) -> tuple[str, list[str]]:
    if not made.variants:
        return "first", []
    changes = jax_arguments.nearest_differences(made.variants, arguments)
    if changes:
        return "arguments", changes
    if all(reference() is not function for reference in made.objects):
        return "new object", [
            "jax.jit was called again for the same function: each result has its own cache"
        ]
    return "cache", ["no argument changed: a cache was cleared, or an option of jax changed"]
