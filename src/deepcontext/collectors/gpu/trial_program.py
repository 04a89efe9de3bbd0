"""The program that `trial` runs: one vendor's driver, asked through ctypes. Prints one JSON object.

AMD's tools register before HIP starts, by many structures: the native core does that, as in a session.
For NVIDIA nothing of deepcontext is imported, so that the trial starts fast.
"""

from __future__ import annotations

import ctypes
import json
import sys

_SUCCESS = 0


def try_nvidia(driver: str, *libraries: str) -> dict[str, int | str]:
    """Start the driver, count devices, subscribe to the first libcupti that can, and unsubscribe."""
    cuda = ctypes.CDLL(driver)
    code = cuda.cuInit(0)
    if code != _SUCCESS:
        return {"failed": f"cuInit failed with {_cuda_error(cuda, code)}"}
    devices = ctypes.c_int(0)
    code = cuda.cuDeviceGetCount(ctypes.byref(devices))
    if code != _SUCCESS:
        return {"failed": f"cuDeviceGetCount failed with {_cuda_error(cuda, code)}"}
    failed = ""
    for path in libraries:
        code = _subscribe(ctypes.CDLL(path))
        if code == _SUCCESS:
            return {"devices": devices.value, "library": path}
        failed = failed or f"cuptiSubscribe failed with CUPTI error {code}"
    return {"failed": failed}


def _subscribe(library: ctypes.CDLL) -> int:
    """Subscribe and unsubscribe; return CUPTI's result."""
    subscriber = ctypes.c_void_p()
    callback = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p
    )(lambda *_: None)
    code: int = library.cuptiSubscribe(ctypes.byref(subscriber), callback, None)
    if code == _SUCCESS:
        library.cuptiUnsubscribe(subscriber)
    return code


def try_amd(hip: str, interface: str, profiler: str) -> dict[str, int | str]:
    """Register as a tool, start HIP, count devices, and end."""
    from deepcontext import _native  # noqa: PLC0415  see above

    buffer_bytes, deadline_s = 4 << 20, 10.0
    sizes = buffer_bytes, buffer_bytes, deadline_s, deadline_s
    if refusal := _native.gpu_start(interface, profiler, hip, *sizes, False, False, []):  # noqa: FBT003
        return {"failed": refusal}
    try:
        return _count_hip_devices(hip)
    finally:
        _native.gpu_stop(interface)


def _count_hip_devices(hip: str) -> dict[str, int | str]:
    library = ctypes.CDLL(hip)
    code = library.hipInit(0)
    if code != _SUCCESS:
        return {"failed": f"hipInit failed with HIP error {code}"}
    devices = ctypes.c_int(0)
    code = library.hipGetDeviceCount(ctypes.byref(devices))
    if code != _SUCCESS:
        return {"failed": f"hipGetDeviceCount failed with HIP error {code}"}
    version = ctypes.c_int(0)
    library.hipRuntimeGetVersion(ctypes.byref(version))
    return {"devices": devices.value, "runtime_version": version.value}


def _cuda_error(cuda: ctypes.CDLL, code: int) -> str:
    text = ctypes.c_char_p()
    try:
        cuda.cuGetErrorName(code, ctypes.byref(text))
    except AttributeError:
        text.value = None
    return f"{text.value.decode()} ({code})" if text.value else f"CUDA error {code}"


if __name__ == "__main__":
    vendor, *libraries = sys.argv[1:]
    try:
        answer = (try_nvidia if vendor == "nvidia" else try_amd)(*libraries)
    except (OSError, AttributeError) as error:
        answer = {"failed": f"a library cannot be used: {error}"}
    json.dump(answer, sys.stdout)
