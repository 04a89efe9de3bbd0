"""Among which processes a process number is unique: one boot of one machine, or of one container.

Standard library only, because the profiled program writes it into its profile.
"""

from __future__ import annotations

import os
from typing import Final

_BOOT: Final = "/proc/sys/kernel/random/boot_id"
_NAMESPACE: Final = "/proc/self/ns/pid"
_BOOT_LENGTH: Final = 8


def pid_space() -> str:
    """Return ``3f0c9a52-4026531836``, the boot and the namespace; "" where the kernel does not say."""
    try:
        with open(_BOOT, encoding="ascii") as file:  # noqa: PTH123  no more is imported than must be
            boot = file.read(_BOOT_LENGTH)
        return f"{boot}-{os.stat(_NAMESPACE).st_ino}"  # noqa: PTH116  likewise
    except OSError:
        return ""
