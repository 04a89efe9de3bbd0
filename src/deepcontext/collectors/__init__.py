"""Sources of measurements, one a file. Listed once, in the order in which they start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.collectors.amd import AmdGpu
from deepcontext.collectors.counters import Counters
from deepcontext.collectors.cpu_sampling import CpuSampling
from deepcontext.collectors.jax_programs import JaxPrograms
from deepcontext.collectors.native_frames import NativeFrames
from deepcontext.collectors.nvidia import NvidiaGpu
from deepcontext.collectors.python_frames import PythonFrames
from deepcontext.collectors.torch_compile import TorchCompile
from deepcontext.collectors.torch_memory import TorchMemory
from deepcontext.collectors.torch_operators import TorchOperators

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext.profiler.collector import Collector

ALL: tuple[Callable[[], Collector], ...] = (
    PythonFrames,
    NativeFrames,
    TorchOperators,
    TorchMemory,  # after the operators: their calibration allocates tensors of its own
    TorchCompile,
    JaxPrograms,
    NvidiaGpu,
    AmdGpu,
    Counters,  # before the sampler, which reads them
    CpuSampling,  # last to start and first to stop: others' work is not the program's
)
