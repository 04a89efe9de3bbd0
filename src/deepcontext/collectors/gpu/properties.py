"""Properties of a GPU that a reader needs: its name, its memory, and its number of multiprocessors.

Asks libraries that the program has loaded and initialised, and starts none. Invariant: a figure that
they do not know is 0, a name "", not a guess.
"""

from __future__ import annotations

import sys
from typing import Any, Final

# Source: CUdevice_attribute of the CUDA driver API, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT.
_MULTIPROCESSOR_COUNT: Final = 16
_NAME_BYTES: Final = 256


def multiprocessors(interface: str, driver: str, device: int) -> int:
    """Return the number of multiprocessors (compute units) of a device, 0 where it is not known.

    Args:
        interface: name of the vendor's profiling interface, as the native core names it.
        driver: the vendor's driver library.
        device: number of the device, as the interface counts.
    """
    return (_of_cuda(driver, device) if interface == "cupti" else 0) or _of_torch(device)


def memory_bytes(interface: str, driver: str, device: int) -> int:
    """Return the size of a device's memory, 0 where it is not known; arguments as of `multiprocessors`."""
    found = _memory_of_cuda(driver, device) if interface == "cupti" else 0
    return found or int(getattr(_torch_properties(device), "total_memory", 0))


def device_name(interface: str, driver: str, device: int) -> str:
    """Return the name of a device, "NVIDIA H100 80GB HBM3"; arguments as of `multiprocessors`."""
    found = _name_of_cuda(driver, device) if interface == "cupti" else ""
    return found or str(getattr(_torch_properties(device), "name", ""))


def _name_of_cuda(driver: str, device: int) -> str:
    import ctypes  # noqa: PLC0415  only in programs that used a GPU

    handle, text = ctypes.c_int(0), ctypes.create_string_buffer(_NAME_BYTES)
    try:
        cuda = ctypes.CDLL(driver)
        if cuda.cuDeviceGet(ctypes.byref(handle), device):
            return ""
        if cuda.cuDeviceGetName(text, _NAME_BYTES, handle):
            return ""
    except (OSError, AttributeError):
        return ""
    return text.value.decode("utf-8", "replace")


def _memory_of_cuda(driver: str, device: int) -> int:
    import ctypes  # noqa: PLC0415  only in programs that used a GPU

    size, handle = ctypes.c_size_t(0), ctypes.c_int(0)
    try:
        cuda = ctypes.CDLL(driver)
        if cuda.cuDeviceGet(ctypes.byref(handle), device):
            return 0
        if cuda.cuDeviceTotalMem_v2(ctypes.byref(size), handle):
            return 0
    except (OSError, AttributeError):
        return 0
    return size.value


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
    return int(getattr(_torch_properties(device), "multi_processor_count", 0))


def _torch_properties(device: int) -> object:
    """Ask torch, if the program has initialised its GPUs; None where it knows nothing."""
    torch: Any = sys.modules.get("torch")
    try:
        if torch is None or not torch.cuda.is_initialized():
            return None
        return torch.cuda.get_device_properties(device)
    except (AttributeError, AssertionError, RuntimeError):
        return None
