"""Among which processes a process number is unique: one boot of one machine, or of one container.

Standard library only, because the profiled program writes it into its profile.
"""

from __future__ import annotations

from typing import Final

from deepcontext.profiler.format.own_os import os, read_file

_BOOT: Final = "/proc/sys/kernel/random/boot_id"
_NAMESPACE: Final = "/proc/self/ns/pid"
_BOOT_LENGTH: Final = 8


def pid_space() -> str:
    """Return ``3f0c9a52-4026531836``, the boot and the namespace; "" where the kernel does not say."""
    try:
        boot = read_file(_BOOT, _BOOT_LENGTH).decode("ascii")
        return f"{boot}-{os.stat(_NAMESPACE).st_ino}"
    except OSError:
        return ""
