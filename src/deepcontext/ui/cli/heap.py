"""Keep freed memory in a process that ends soon.

glibc gives large arrays back to the system when they are freed, so that the kernel has to clear every page
of the next one: a third of the processor time of the analyzers on a million nodes (measured).
"""

from __future__ import annotations

import ctypes
from typing import Final

# Numbers of <malloc.h> of glibc.
_TRIM_THRESHOLD: Final = -1
_TOP_PAD: Final = -2
_MMAP_THRESHOLD: Final = -3
_KEPT_BYTES: Final = 1 << 30
_PADDED_BYTES: Final = 64 << 20
_LARGEST_BYTES: Final = 32 << 20  # the most that glibc accepts


def keep_freed_memory() -> None:
    """Let arrays take the memory of those freed before; does nothing where the C library is another."""
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_MMAP_THRESHOLD, _LARGEST_BYTES)
        set_option(_TRIM_THRESHOLD, _KEPT_BYTES)
        set_option(_TOP_PAD, _PADDED_BYTES)
