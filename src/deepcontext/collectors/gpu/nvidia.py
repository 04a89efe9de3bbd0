"""NVIDIA GPUs: kernels, copies, memsets, waiting and idle time through CUPTI.

The collector is native (`native/gpu/cupti`); this file decides when it starts, with which libcupti,
and what the outcome is if it cannot. Invariant: CUPTI is not loaded before the program uses CUDA.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING

from deepcontext import _native
from deepcontext.collectors.gpu.collection import (
    OTHER_LIBRARY,
    FrameworkWatch,
    GpuCollection,
    Interface,
    torch_build,
)
from deepcontext.collectors.gpu.driver_start import DriverStart
from deepcontext.collectors.gpu.libraries import (
    cuda_driver,
    find_cupti,
    has_nvidia_driver,
    later_copy,
    missing_nvidia_nodes,
)
from deepcontext.collectors.gpu.tool_watch import (
    EVERYTHING,
    NOTHING,
    RECORDS,
    TOOLS,
    Tool,
    ToolWatch,
)
from deepcontext.collectors.gpu.torch_profiler import TorchProfilerWatch
from deepcontext.profiler.format.gpu_metrics import GPU_METRICS
from deepcontext.profiler.recording.collector import Availability
from deepcontext.profiler.recording.options import SessionOptions
from deepcontext.profiler.recording.rank import current_rank

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepcontext.profiler.format.metric import MetricDescriptor
    from deepcontext.profiler.format.status import Outcome
    from deepcontext.profiler.recording.collector import PhaseRule

_NO_DRIVER = (
    "no NVIDIA driver on this machine (no /proc/driver/nvidia, /dev/nvidiactl or /dev/dxg); in a "
    "container, give it the GPU, for example with 'docker run --gpus all'"
)
_NO_NODES = (
    "the driver is not tried, because loading its library as root would make the missing device "
    "nodes ({}); run 'nvidia-smi' and, for /dev/nvidia-uvm, 'nvidia-modprobe -u' once; in a "
    "container, give it the GPU, for example with 'docker run --gpus all'"
)
_STALLS_OF_RANKS = (
    "stalls are not sampled: this is one of {} ranks, whose kernels may wait for each other, and "
    "sampling lets kernels run one after the other"
)
_MPS = (
    "the GPU may be shared with other processes (MPS): its busy and idle time are those of this "
    "process, and kernels may take longer while others run"
)
_LEFT_ALL = (
    "GPU work that ran while {} had CUPTI is missing from this profile: only one of the two can "
    "subscribe to CUPTI, and the profiler gave way"
)
_LEFT_RECORDS = (
    "{} had CUPTI for a part of the session: the GPU time of launches in that time is in its output"
)
_WAITED_IN_VAIN = "the program used no NVIDIA GPU"
_DRIVER_PARAMETERS = Path("/proc/driver/nvidia/params")


class NvidiaGpu:
    """Puts the work of NVIDIA GPUs under the call paths that launched it."""

    name = "nvidia"
    phase_rules: Sequence[PhaseRule] = ()
    metrics: Sequence[MetricDescriptor] = GPU_METRICS

    def __init__(self) -> None:
        self._options = SessionOptions()
        self._collection = GpuCollection("nvidia")
        self._watch = FrameworkWatch(self._on_framework, self._collection.refuse)
        self._driver_start = DriverStart(self._collection, self._begin)
        self._torch_profiler = TorchProfilerWatch(self._on_torch_profiler)
        self._tools = [ToolWatch(tool, self._on_tool) for tool in TOOLS]
        self._given_up: dict[str, int] = {}  # what of CUPTI each of the program's tools has
        self._copies: list[str] = []  # of libcupti, when the session began

    def probe(self) -> Availability:
        """Say which CUPTI can be loaded, or what is missing."""
        if not has_nvidia_driver():
            return Availability(available=False, reason=_NO_DRIVER)
        if missing := missing_nvidia_nodes():
            return Availability(available=False, reason=_NO_NODES.format(", ".join(missing)))
        cupti = find_cupti()
        version, reason = _native.gpu_probe("cupti", cupti.path, cuda_driver())
        if reason:
            return Availability(available=False, reason=reason)
        from deepcontext.collectors.gpu.trial import try_nvidia  # noqa: PLC0415  doctor only

        trial = try_nvidia(cuda_driver(), cupti.path, *cupti.others)
        if trial.reason:
            return Availability(available=False, reason=trial.reason)
        other = ""
        if trial.library != cupti.path:
            version, _ = _native.gpu_probe("cupti", trial.library, cuda_driver())
            other = OTHER_LIBRARY.format(cupti.path, trial.library)
        devices = f"{trial.devices} GPU{'s' * (trial.devices > 1)}"
        origin = "" if other else f"from {cupti.origin} "
        found = f"{devices}, CUPTI {version} {origin}({trial.library})"
        extras = [text for text in (cupti.warning, other, _restriction()) if text]
        collected = "kernels, copies, memsets, graphs, waiting and idle time"
        return Availability(available=True, reason="; ".join([f"{found}: {collected}", *extras]))

    def start(self, options: SessionOptions) -> None:
        """Collect from now on if the program uses CUDA already, else from its first use on."""
        self._options = options
        if not has_nvidia_driver():
            return
        if "CUDA_MPS_PIPE_DIRECTORY" in os.environ:
            self._collection.remark(_MPS)
        rank = current_rank()
        if options.stalls and rank:
            self._options = options = dataclasses.replace(options, stalls=False)
            self._collection.note(_STALLS_OF_RANKS.format(rank.of))
        self._torch_profiler.install()
        for tool in self._tools:
            tool.install()
        if _native.gpu_is_driver_running(cuda_driver()):
            self._begin()
            return
        self._driver_start.wait(_interface(), options)
        self._watch.install()

    def _on_framework(self, name: str) -> bool:
        if name == "torch" and torch_build("cuda") is None:
            return False  # a build for the CPU or for AMD
        # Only now is it known which libcupti the program will use.
        self._driver_start.on_framework(_interface(), self._options)
        return True

    def _begin(self) -> None:
        if not self._collection.has_begun:
            self._collection.begin(_interface(), self._options)
            self._collection.uses(_native.gpu_cupti())
            self._copies = _native.gpu_mapped_libraries("libcupti.so")

    def _on_torch_profiler(self, is_running: bool) -> None:  # noqa: FBT001  a callback
        self._give_up("torch.profiler", RECORDS if is_running else NOTHING)

    def _on_tool(self, tool: Tool, is_running: bool) -> None:  # noqa: FBT001  a callback
        if is_running and tool.needs == EVERYTHING:
            self._collection.note(_LEFT_ALL.format(tool.name))
        elif is_running:
            self._collection.remark(_LEFT_RECORDS.format(tool.name))
        self._give_up(tool.name, tool.needs if is_running else NOTHING)

    def _give_up(self, tool: str, part: int) -> None:
        """Leave a part of CUPTI to a tool of the program, or take it back."""
        self._driver_start.look()
        self._given_up[tool] = part
        self._collection.note(_native.gpu_yield(max(self._given_up.values())))

    def notice_import(self) -> None:
        """Start if a framework was loaded in a way that its hook did not see."""
        self._watch.notice()
        self._torch_profiler.notice()
        for tool in self._tools:
            tool.notice()

    def stop(self) -> None:
        """Stop, after the records of all that was launched until now."""
        self._watch.cancel()
        self._torch_profiler.uninstall()
        for tool in self._tools:
            tool.uninstall()
        self._driver_start.cancel()
        self._collection.end()
        if self._collection.has_begun:
            self._collection.note(self._later_copies())

    def _later_copies(self) -> str:
        first = self._copies or self._driver_start.copies
        later = set(_native.gpu_mapped_libraries("libcupti.so")) - set(first)
        return later_copy("CUPTI", later)

    def settle(self) -> None:
        """Bring complete records into the tree."""
        self._driver_start.look()
        self._collection.flush()

    def outcome(self) -> Outcome:
        """Say what was recorded, and what was lost."""
        reason = _WAITED_IN_VAIN if has_nvidia_driver() else _NO_DRIVER
        return self._collection.outcome(reason)

    def sections(self) -> Mapping[str, bytes]:
        """Return busy and idle time of the devices."""
        return self._collection.sections()


def _interface() -> Interface:
    cupti = find_cupti()
    return Interface("cupti", cupti.path, cuda_driver(), cupti.warning, cupti.others)


def _restriction() -> str:
    """Return what the driver denies to ordinary users, as far as it says so."""
    try:
        parameters = _DRIVER_PARAMETERS.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    if "RmProfilingAdminOnly: 1" not in parameters:
        return ""
    return (
        "stall sampling (--stalls) needs administrator rights here; the nvidia module's option "
        "NVreg_RestrictProfilingToAdminUsers=0 allows it for all users"
    )
