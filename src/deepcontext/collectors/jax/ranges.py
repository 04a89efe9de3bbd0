"""Operations of compiled programs on NVIDIA GPUs, by the NVTX range that XLA puts around each.

The native core is the NVTX injection library: on first use, a copy of NVTX loads the library that an
environment variable names. The variable is set from the import of jax until then, and only if there
is a driver and no other tool has set it. Kernels launched inside a range belong to its operation;
`collectors/gpu/nvidia.py` collects them.
"""

from __future__ import annotations

import os
from typing import Final

from deepcontext import _native
from deepcontext.collectors.gpu.libraries import has_nvidia_driver

VARIABLE: Final = "NVTX_INJECTION64_PATH"
# Of the marked operations; a training step on an H100 had 8 % and 15 %, all of them tried by the compiler.
_MOST_UNKNOWN: Final = 0.5


class DeviceRanges:
    """Makes XLA announce the operation for which it launches kernels."""

    def __init__(self) -> None:
        self._library = ""  # what the variable was set to
        self._other_tool = ""
        self._has_device = False

    def install(self) -> None:
        """Offer the library to the copies of NVTX that are loaded from now on."""
        if not has_nvidia_driver():
            return
        if VARIABLE in os.environ:
            self._other_tool = os.environ[VARIABLE]
            return
        self._library = str(_native.__file__)
        os.environ[VARIABLE] = self._library

    def uninstall(self) -> None:
        """Stop offering the library."""
        if self._library and os.environ.get(VARIABLE) == self._library:
            del os.environ[VARIABLE]

    def on_program(self, platform: str) -> None:
        """A program was compiled for a platform."""
        self._has_device = self._has_device or platform not in {"", "cpu"}
        if _native.jax_is_injected():
            self.uninstall()  # so that children of the program do not inherit the variable

    def details(self) -> dict[str, int]:
        """Return figures for the trust report."""
        marked, known = _native.jax_device_ranges()
        return {"device_operations": marked, "device_operations_known": known} if marked else {}

    def has_times(self) -> bool:
        """Return whether the GPU's collector times the operations of programs."""
        return _native.jax_device_ranges()[1] > 0

    def reasons(self) -> list[str]:
        """Say why kernels are not shown by operation; empty if they are."""
        marked, known = _native.jax_device_ranges()
        # While it compiles, XLA tries kernels in programs of its own.
        if marked - known > _MOST_UNKNOWN * marked:
            return [
                f"{marked - known} of {marked} operations on the GPU belong to unknown programs"
            ]
        if marked or not self._has_device or not (self._library or self._other_tool):
            return []
        why = (
            f"{VARIABLE} names another tool's library, '{self._other_tool}'"
            if self._other_tool
            else "XLA marked no operation; it may have been loaded before the session"
        )
        return [f"kernels are shown under their jitted function, not under its operations: {why}"]
