"""AMD GPUs: kernels, copies, waiting and idle time through rocprofiler-sdk, or roctracer before ROCm 7.

The collectors are native (`native/gpu/rocprofiler`, `native/gpu/roctracer`); this file chooses one,
starts it before the ROCm runtime starts, and says what is missing. Not yet run on AMD hardware: the
collectors conform to the binary layout of the interfaces and are tested against fakes.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from deepcontext import _native
from deepcontext.collectors.gpu.collection import GpuCollection, Interface, is_mapped
from deepcontext.collectors.gpu.libraries import (
    ROCPROFILER_VARIABLE,
    ROCTRACER_VARIABLE,
    find_hip,
    find_rocprofiler,
    find_roctracer,
    has_amd_driver,
    later_copy,
)
from deepcontext.collectors.gpu.torch_profiler import TorchProfilerWatch
from deepcontext.collectors.gpu.usage import hip_was_used
from deepcontext.profiler.format.gpu_metrics import GPU_METRICS
from deepcontext.profiler.recording.collector import Availability

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepcontext.profiler.format.metric import MetricDescriptor
    from deepcontext.profiler.format.status import Outcome
    from deepcontext.profiler.recording.collector import PhaseRule
    from deepcontext.profiler.recording.options import SessionOptions

_NO_DRIVER = (
    "no AMD GPU driver on this machine (no /dev/kfd); in a container, give it the GPU with "
    "'--device /dev/kfd --device /dev/dri'"
)
_NO_ACCESS = "this user may not open /dev/kfd; add the user to the groups 'render' and 'video'"
_TOOL_VARIABLES = ("ROCP_TOOL_LIBRARIES", "HSA_TOOLS_LIB")
# Libraries of AMD's own tools, when they are loaded before the program.
_TOOL_LIBRARIES = ("rocprof", "roctracer", "omnitrace")
_IN_TIME = (
    "the collector must register before the program first uses the GPU, as 'deepcontext profile' "
    "does; a session that the program begins later gets no kernels, and says so"
)
_STEMS: Final = {"rocprofiler": "librocprofiler-sdk.so", "roctracer": "libroctracer64.so"}
# Source: pytorch/kineto, RocprofLogger.cpp, ensureRegistered: where a tool is registered already, Kineto
# asks for nothing.
_TORCH_PROFILER: Final = (
    "torch.profiler was used while this session was registered with AMD's profiling library, which "
    "serves the tool that registered first: traces of torch.profiler may lack GPU work; run the "
    "program without deepcontext for such a trace"
)
_DOORBELL: Final = (
    "$DEBUG_CLR_DIRECT_DOORBELL is set, with which ROCm's profiling library gets no records of "
    "kernels; unset it"
)
_INTERPOSED = (
    "rocprofiler-sdk 1.3 hangs programs with queue interposition (vllm-project/vllm issue 54087), which "
    "$ROCPROFILER_QUEUE_INTERPOSITION turns on; unset it"
)
_CRASHING_COPIES = (
    "HIP 7.2 crashes on some cards in asynchronous copies below any profiler (pytorch/pytorch issue "
    "192580); use another release of ROCm where it does"
)
_INTERPOSING_SDK: Final = range(10300, 10400)
_CRASHING_HIP: Final = range(70200000, 70300000)  # as hipRuntimeGetVersion: 7.2
_STALLS = (
    "stalls (--stalls) are not sampled: AMD's PC sampling is a beta that can freeze the GPU and that "
    "must be enabled explicitly ($ROCPROFILER_PC_SAMPLING_BETA_ENABLED), and its interface differs "
    "between releases"
)


class AmdGpu:
    """Puts the work of AMD GPUs under the call paths that launched it."""

    name = "amd"
    phase_rules: Sequence[PhaseRule] = ()
    metrics: Sequence[MetricDescriptor] = GPU_METRICS

    def __init__(self) -> None:
        self._collection = GpuCollection("amd")
        self._torch_profiler = TorchProfilerWatch(self._on_torch_profiler)
        self._stem = ""  # of the profiling library's file
        self._copies: list[str] = []  # of it, when the session began

    def probe(self) -> Availability:
        """Say which interface can be loaded, or what is missing."""
        if not has_amd_driver():
            return Availability(available=False, reason=_NO_DRIVER)
        if os.path.exists("/dev/kfd") and not os.access("/dev/kfd", os.R_OK | os.W_OK):  # noqa: PTH110
            return Availability(available=False, reason=_NO_ACCESS)
        interface, version, reason = _choose()
        if interface is None:
            return Availability(available=False, reason=reason)
        from deepcontext.collectors.gpu.trial import try_amd  # noqa: PLC0415  doctor only

        # PyTorch's wheels bring a HIP of their own, which no path leads to.
        crashing = ""
        if os.path.isabs(interface.driver):  # noqa: PTH117
            trial = try_amd(interface.name, interface.profiler, interface.driver)
            if trial.reason:
                return Availability(available=False, reason=trial.reason)
            crashing = _CRASHING_COPIES if trial.runtime_version in _CRASHING_HIP else ""
        found = f"{interface.name} {version} ({interface.profiler}): "
        collected = "kernels, copies, graphs, waiting and idle time"
        notes = [_IN_TIME, interface.warning, crashing, reason, _STALLS]
        return Availability(
            available=True, reason="; ".join([found + collected, *(text for text in notes if text)])
        )

    def start(self, options: SessionOptions) -> None:
        """Register now, because it is too late once the ROCm runtime runs."""
        if not has_amd_driver():
            return
        interface, _, reason = _choose()
        if interface is None:
            self._collection.refuse(reason)
        else:
            self._collection.begin(interface, options)
            self._stem = _STEMS[interface.name]
            self._copies = _native.gpu_mapped_libraries(self._stem)
            self._torch_profiler.install()

    def _on_torch_profiler(self, is_running: bool) -> None:  # noqa: FBT001  a callback
        if is_running:
            self._collection.remark(_TORCH_PROFILER)

    def notice_import(self) -> None:
        """Watch torch if it was loaded in a way that the hook did not see."""
        self._torch_profiler.notice()

    def stop(self) -> None:
        """Stop, after the records of all that was launched until now."""
        self._torch_profiler.uninstall()
        self._collection.end()
        if self._stem:
            later = set(_native.gpu_mapped_libraries(self._stem)) - set(self._copies)
            self._collection.note(later_copy(self._stem, later))

    def settle(self) -> None:
        """Bring complete records into the tree."""
        self._collection.flush()

    def outcome(self) -> Outcome:
        """Say what was recorded, and what was lost."""
        return self._collection.outcome(_NO_DRIVER, was_used=hip_was_used())

    def sections(self) -> Mapping[str, bytes]:
        """Return busy and idle time of the devices."""
        return self._collection.sections()


def _choose() -> tuple[Interface | None, str, str]:
    """Return the interface to use, its version, and why no better one is used."""
    hip = find_hip().path
    reasons = []
    if ROCTRACER_VARIABLE not in os.environ or ROCPROFILER_VARIABLE in os.environ:
        library = find_rocprofiler()
        version, reason = _native.gpu_probe("rocprofiler", library.path, hip)
        if not reason:
            warning = _warning(library.warning, version)
            interface = Interface("rocprofiler", library.path, hip, warning)
            return interface, _dotted(version, 10000, 100), ""
        reasons.append(reason)
    if ROCPROFILER_VARIABLE not in os.environ:
        library = find_roctracer()
        version, reason = _native.gpu_probe("roctracer", library.path, hip)
        if not reason:
            interface = Interface("roctracer", library.path, hip, library.warning)
            return interface, f"{version // 100}.{version % 100}", "; ".join(reasons)
        reasons.append(reason)
    return None, "", f"no profiling library of ROCm can be used: {'; '.join(reasons)}"


def _names_tool(variable: str, value: str) -> bool:
    if variable == "LD_PRELOAD":
        return any(part in value for part in _TOOL_LIBRARIES)
    return bool(value)


def _is_on(variable: str) -> bool:
    return os.environ.get(variable, "0") not in {"", "0"}


def _dotted(version: int, major: int, minor: int) -> str:
    return f"{version // major}.{version % major // minor}.{version % minor}"


def _warning(of_library: str, version: int) -> str:
    """Return what keeps records away or hangs: another tool, a runtime that runs, a bad release."""
    warnings = [
        f"${variable}={os.environ[variable]} loads another ROCm tool, which may take the records; "
        "unset it"
        for variable in (*_TOOL_VARIABLES, "LD_PRELOAD")
        if _names_tool(variable, os.environ.get(variable, ""))
    ]
    if _is_on("DEBUG_CLR_DIRECT_DOORBELL"):
        warnings.append(_DOORBELL)
    if version in _INTERPOSING_SDK and _is_on("ROCPROFILER_QUEUE_INTERPOSITION"):
        warnings.append(_INTERPOSED)
    if of_library:
        warnings.append(of_library)
    if is_mapped("libhsa-runtime64.so"):
        warnings.append(
            "the ROCm runtime was loaded before profiling began, so kernels may be missing; start "
            "the program with 'deepcontext profile'"
        )
    return "; ".join(warnings)
