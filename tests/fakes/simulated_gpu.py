"""The simulated GPU as the programs of `cases/gpu_*.py` use it: what frameworks do, said by hand.

All are functions of a C library, so that they are no frames of the program. Times are ns.
"""

from __future__ import annotations

import ctypes
import os

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
