"""Sources of measurements, one a file; listed here once, in the order in which they start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.collectors.cpu.counters import Counters
from deepcontext.collectors.cpu.native_frames import NativeFrames
from deepcontext.collectors.cpu.sampling import CpuSampling
from deepcontext.collectors.gpu.amd import AmdGpu
from deepcontext.collectors.gpu.nccl import Nccl
from deepcontext.collectors.gpu.nvidia import NvidiaGpu
from deepcontext.collectors.jax.programs import JaxPrograms
from deepcontext.collectors.python.frames import PythonFrames
from deepcontext.collectors.torch.compilation import TorchCompile
from deepcontext.collectors.torch.memory import TorchMemory
from deepcontext.collectors.torch.operators import TorchOperators

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext.profiler.recording.collector import Collector

ALL: tuple[Callable[[], Collector], ...] = (
    PythonFrames,
    NativeFrames,
    TorchOperators,
    TorchMemory,  # after the operators, whose calibration allocates tensors
    TorchCompile,
    JaxPrograms,
    NvidiaGpu,
    AmdGpu,
    Nccl,
    Counters,  # before the sampler, which reads them
    CpuSampling,  # last to start and first to stop: samples must not see the other collectors work
)
