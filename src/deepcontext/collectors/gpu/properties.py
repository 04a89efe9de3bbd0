"""Properties of a GPU that analyzers need: its number of multiprocessors.

Asks libraries that the program has loaded and initialised, and starts none. Invariant: a figure that
they do not know is 0, not a guess.
"""

from __future__ import annotations

import sys
from typing import Any, Final

# Source: CUdevice_attribute of the CUDA driver API, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT.
_MULTIPROCESSOR_COUNT: Final = 16


def multiprocessors(interface: str, driver: str, device: int) -> int:
    """Return the number of multiprocessors (compute units) of a device, 0 where it is not known.

    Args:
        interface: name of the vendor's profiling interface, as the native core names it.
        driver: the vendor's driver library.
        device: number of the device, as the interface counts.
    """
    return (_of_cuda(driver, device) if interface == "cupti" else 0) or _of_torch(device)


def _of_cuda(driver: str, device: int) -> int:
    import ctypes  # noqa: PLC0415  only in programs that used a GPU

    count, handle = ctypes.c_int(0), ctypes.c_int(0)
    try:
        cuda = ctypes.CDLL(driver)
        # A driver that the program has not initialised returns an error.
        if cuda.cuDeviceGet(ctypes.byref(handle), device):
            return 0
        if cuda.cuDeviceGetAttribute(ctypes.byref(count), _MULTIPROCESSOR_COUNT, handle):
            return 0
    except (OSError, AttributeError):
        return 0
    return count.value


def _of_torch(device: int) -> int:
    """Ask torch, if the program has initialised its GPUs."""
    torch: Any = sys.modules.get("torch")
    try:
        if torch is None or not torch.cuda.is_initialized():
            return 0
        return int(torch.cuda.get_device_properties(device).multi_processor_count)
    except (AttributeError, AssertionError, RuntimeError):
        return 0
