"""Whether the program used a GPU of AMD, as its frameworks know.

Asks frameworks that the program has loaded and initialised, and initialises none.
"""

from __future__ import annotations

import sys
from typing import Any


def hip_was_used() -> bool:
    """Return whether a framework has taken memory of a GPU through HIP."""
    return _by_torch() or _by_jax()


def _by_torch() -> bool:
    torch: Any = sys.modules.get("torch")
    try:
        if torch is None or torch.version.hip is None or not torch.cuda.is_initialized():
            return False
        return any(
            torch.cuda.max_memory_allocated(device) > 0
            for device in range(torch.cuda.device_count())
        )
    except (AttributeError, AssertionError, RuntimeError):
        return False


def _by_jax() -> bool:
    bridge: Any = sys.modules.get("jax._src.xla_bridge")
    backends = getattr(bridge, "_backends", None)
    return isinstance(backends, dict) and "rocm" in backends
