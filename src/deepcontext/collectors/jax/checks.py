"""Modes of JAX for the search for errors that are on: a program may have left them on.

Reads the values that JAX keeps at this moment. Starts nothing of JAX and imports nothing.
"""

from __future__ import annotations

import sys
from typing import Final

# Source: jax/_src/config.py.
_MODES: Final = ("jax_debug_nans", "jax_debug_infs", "jax_disable_jit")


def checks_on() -> tuple[str, ...]:
    """Return the names of the modes that are on, in JAX's spelling."""
    config = getattr(sys.modules.get("jax"), "config", None)
    return tuple(name for name in _MODES if getattr(config, name, False) is True)
