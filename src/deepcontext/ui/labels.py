"""Names of metrics, measures and figures for a reader.

Names in files end with their unit (``host_time_ns``); here the unit moves to the value. Does not know
a profile. Invariant: an unknown name keeps its words.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from deepcontext.ui.format import format_bytes, format_count, format_ns

if TYPE_CHECKING:
    from collections.abc import Callable

_UPPER: Final = {
    "cpu": "CPU",
    "flop": "FLOPs",
    "flops": "FLOPs",
    "gil": "GIL",
    "gpu": "GPU",
    "hlo": "HLO",
    "hz": "Hz",
    "jax": "JAX",
}
_UNIT_ENDINGS: Final = ("_ns", "_bytes", "_count")
_UNITS: Final[dict[str, Callable[[float], str]]] = {
    "ns": format_ns,
    "s": lambda duration_s: format_ns(duration_s * 1e9),
    "bytes": format_bytes,
    "hz": lambda rate_hz: f"{rate_hz:g} Hz",
}
_KNOWN: Final = {
    "alloc_bytes": "memory allocated",
    "copy_bytes": "bytes copied",
    "growth_bytes": "memory growth",
    "transfer_bytes": "bytes transferred",
    "repeated_transfer_bytes": "bytes transferred again",
    "read_bytes": "bytes read in place",
}
# "gpu_own_peak_bytes", "peak_activation_bytes": whose memory, and which part of it.
_PEAK: Final = re.compile(r"(gpu_|jax_)?(own_)?peak(?:_(\w+))?_bytes")
_OWN_PREFIX: Final = "gpu_"


def words(name: str) -> str:
    """Return ``GPU time`` for ``gpu_time``."""
    return " ".join(_UPPER.get(word, word) for word in name.split("_"))


def metric_label(name: str) -> str:
    """Return ``host time`` for ``host_time_ns``, ``peak memory`` for ``peak_bytes``."""
    of_gpu = name.removeprefix(_OWN_PREFIX)
    if of_gpu in _KNOWN:
        return f"GPU {_KNOWN[of_gpu]}" if of_gpu != name else _KNOWN[of_gpu]
    if peak := _PEAK.fullmatch(name):
        owner, own, part = peak.groups()
        label = "own peak memory" if own else "peak memory"
        label = f"{words(owner.rstrip('_'))} {label}" if owner else label
        return f"{label}: {words(part)}" if part else label
    if name.endswith("_count"):
        return _plural(words(name.removesuffix("_count")))
    for ending in _UNIT_ENDINGS:
        name = name.removesuffix(ending)
    return words(name)


def figure(name: str, value: str) -> tuple[str, str]:
    """Return a name and a value with its unit: ``("internal CPU time", "208 ms")``.

    Args:
        name: a name that ends with its unit (``internal_cpu_time_ns``, ``rate_hz``, ``paused_s``), or
            has none.
        value: the recorded text; text that is not a number is returned unchanged.
    """
    label, _, unit = name.rpartition("_")
    try:
        number = float(value)
    except ValueError:
        return words(name), value
    write = _UNITS.get(unit) if label else None
    if write is not None:
        return words(label), write(number)
    is_count = value.isdecimal() and "version" not in name
    return words(name), format_count(number) if is_count else value


def figures(details: dict[str, str]) -> dict[str, str]:
    """Return facts with units and words, without counts of 0."""
    return dict(figure(name, value) for name, value in details.items() if value not in {"0", "0.0"})


def _plural(noun: str) -> str:
    if noun.endswith("s") and not noun.endswith("ss"):
        return noun
    return f"{noun}es" if noun.endswith(("ch", "sh", "ss", "x")) else f"{noun}s"
