"""The simulated GPU for the programs `gpu_*.py` of `fault_pairs/`, which make the calls of frameworks.

All calls are functions of a C library, so that they add no frames to the program. Times are ns.
"""

from __future__ import annotations

import ctypes
import os
import time

from deepcontext import _native

US = 1000
MS = 1000 * US
STREAM = 7

_library = ctypes.CDLL(os.environ["DEEPCONTEXT_SIMULATED_GPU"])
launch = _library.fake_launch
launch.argtypes = (ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint64)
copy = _library.fake_copy
copy.argtypes = (ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int)
synchronize = _library.fake_synchronize
synchronize.argtypes = (ctypes.c_uint64,)
set_shape = _library.fake_set_shape
set_shape.argtypes = (ctypes.c_uint32, ctypes.c_uint32)
_PATIENCE_S = 30


def load_module() -> None:
    """Load kernels with line information; NVIDIA's device alone knows of them."""
    _library.fake_load_module()


def stall(kernel: bytes, reason: bytes, samples: int, line: int) -> None:
    """Let PC sampling find `samples` waiting at a line of /src/kernel.cu, and wait until it did."""
    before = _native.gpu_figures("cupti")["stall_samples"]
    _library.fake_deliver(0)
    _library.fake_stall(kernel, reason, samples, line)
    end = time.monotonic() + _PATIENCE_S
    while _native.gpu_figures("cupti")["stall_samples"] < before + samples:
        if time.monotonic() > end:
            raise TimeoutError(f"no sample of {reason.decode()} within {_PATIENCE_S} s")
        copy(b"HtoD", 0, 0, 0)  # a launch without a record: windows begin and end at launches
        time.sleep(0.01)
