"""Names inside jax and jaxlib that the collector needs, looked up in one place.

These modules of jax are private and move between versions. Each name is looked up in modules that
the program has loaded; none is imported. A missing name is recorded with what the profile loses.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from deepcontext import _native

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class PrivateName:
    """A private attribute of jax that may not exist.

    Attributes:
        what: short name, as in `Names.find`.
        places: (module, attribute path) to try, newest version first.
        loss: what the profile lacks without it, for the trust report.
    """

    what: str
    places: tuple[tuple[str, str], ...]
    loss: str


_COPIES = "waits and copies to the host are not shown by line"
_SAMPLING = "no time inside compiled programs"
# The functions that call the program's callbacks; `jax.debug.print` uses the third, or the last.
CALLBACKS: Final = {
    "pure_callback": ("jax._src.callback", "pure_callback_impl"),
    "io_callback": ("jax._src.callback", "io_callback_impl"),
    "debug_print": ("jax._src.debugging", "debug_callback_impl"),
    "debug_callback": ("jax._src.debugging", "debug_callback_p.impl"),
}

PRIVATE_NAMES: Final = (
    PrivateName(
        "jit_factory",
        (("jaxlib._jax", "pjit"), ("jaxlib.xla_extension", "pjit")),
        "calls of functions that are jitted later are counted by a fallback",
    ),
    PrivateName(
        "jit_type",
        (
            ("jaxlib._jax", "PjitFunction"),
            ("jaxlib.xla_extension", "PjitFunction"),
        ),
        "the type of jitted functions is taken from a function jitted for this purpose",
    ),
    PrivateName(
        "infer_params",
        (("jax._src.pjit", "_infer_params"),),
        "calls that only trace are counted as launches, too",
    ),
    PrivateName(
        "execute",
        (("jax._src.interpreters.pxla", "ExecuteReplicated.__call__"),),
        "calls that only trace are counted as launches, too",
    ),
    *(
        PrivateName(
            what, (place,), "what Python callbacks of compiled programs do is not told apart"
        )
        for what, place in CALLBACKS.items()
    ),
    PrivateName(
        "compile",
        (("jax._src.compiler", "compile_or_get_cached"),),
        "programs are found without the call that compiled them: no reasons for recompilations",
    ),
    PrivateName(
        "monitoring",
        (("jax._src.monitoring", "register_event_duration_secs_listener"),),
        "no times of tracing and lowering, no hits of the compilation cache",
    ),
    PrivateName(
        "profiler_session",
        (
            ("jaxlib._profiler", "ProfilerSession"),
            ("jaxlib.xla_extension.profiler", "ProfilerSession"),
        ),
        _SAMPLING,
    ),
    PrivateName(
        "profiler_options",
        (
            ("jaxlib._profiler", "ProfileOptions"),
            ("jaxlib.xla_extension.profiler", "ProfileOptions"),
        ),
        _SAMPLING,
    ),
    PrivateName("backends", (("jax._src.xla_bridge", "_backends"),), _SAMPLING),
    PrivateName(
        "array_type",
        (("jax._src.array", "ArrayImpl"),),
        "waits in numpy.asarray and .item() are not shown by line",
    ),
    PrivateName(
        "container_types",
        (("jax._src.tree_util", "_registry"),),
        "memory of arrays in containers of the program's own types is shown without a line",
    ),
    PrivateName("array_value", (("jax._src.array", "ArrayImpl._value"),), _COPIES),
    PrivateName("array_wait", (("jax._src.array", "ArrayImpl.block_until_ready"),), _COPIES),
    PrivateName(
        "arrays_wait",
        (("jaxlib.xla_client", "batched_block_until_ready"),),
        _COPIES,
    ),
    PrivateName(
        "device_put",
        (("jaxlib.xla_client", "batched_device_put"),),
        "copies to the device are not shown by line",
    ),
    PrivateName(
        "put_result",
        (("jax._src.dispatch", "_batched_device_put_impl"),),
        "memory of arrays that jax.device_put made is shown without a line",
    ),
)
_BY_NAME: Final = {name.what: name for name in PRIVATE_NAMES}


@dataclass(slots=True)
class Found:
    """A name that exists: `value` is `getattr(owner, attribute)`."""

    owner: Any
    attribute: str
    value: Any

    def replace(self, value: object) -> None:
        """Replace the attribute by `value`."""
        setattr(self.owner, self.attribute, value)

    def watch(
        self, before: Callable[..., object] | None, after: Callable[..., object] | None
    ) -> object:
        """Replace a function by one that calls `before` and `after`, too; return the new one.

        See `_native.watched_call`.
        """
        replacement = _native.watched_call(self.value, before, after)
        self.replace(replacement)
        return replacement

    def restore(self, replacement: object) -> None:
        """Put the original back, unless another tool has replaced `replacement`."""
        if self.owner.__dict__.get(self.attribute) is replacement:
            setattr(self.owner, self.attribute, self.value)


@dataclass(slots=True)
class Names:
    """Look-ups of one session, and what was not found."""

    missing: dict[str, str] = field(default_factory=dict)

    def find(self, what: str) -> Found | None:
        """Return the name; if it is missing, note what is lost and return None."""
        wanted = _BY_NAME[what]
        for module, path in wanted.places:
            owner: Any = sys.modules.get(module)
            *outer, attribute = path.split(".")
            for part in outer:
                owner = getattr(owner, part, None)
            if owner is not None and hasattr(owner, attribute):
                return Found(owner, attribute, getattr(owner, attribute))
        module, path = wanted.places[0]
        self.lose(what, f"{module}.{path} does not exist in jax {jax_version()}")
        return None

    def lose(self, what: str, why: str) -> None:
        """Note that `what` cannot be used."""
        self.missing[what] = f"{why}: {_BY_NAME[what].loss}"


def jax_version() -> str:
    """Return the version of the jax that is loaded, or "unknown"."""
    return str(getattr(sys.modules.get("jax"), "__version__", "unknown"))
