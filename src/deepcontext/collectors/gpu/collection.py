"""What the GPU collectors of all vendors share: waiting for a framework, figures, the outcome.

Knows of a vendor only the name of its native interface. Invariant: on a machine without the vendor's
driver nothing is opened, hooked or started.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepcontext import _native
from deepcontext.collectors.gpu.account import error_of, losses
from deepcontext.collectors.gpu.properties import device_name, memory_bytes, multiprocessors
from deepcontext.profiler.format.status import Outcome, Status
from deepcontext.profiler.recording.import_hook import ImportHook

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext._native import GpuDevice
    from deepcontext.profiler.recording.options import SessionOptions

# A vendor's profiler is started once one of these is loaded, so that a program that uses none of
# them does not pay for a driver.
GPU_FRAMEWORKS: Final = ("torch", "jax", "cupy", "numba", "triton", "tensorflow")
# CUPTI fills a buffer for each thread with records, so large ones would use up the pool at once. The
# other libraries fill one buffer for all threads; handing over many small ones would cost more.
_BUFFER_BYTES: Final = {"cupti": 1 << 20, "rocprofiler": 4 << 20, "roctracer": 4 << 20}
_POOL_BYTES: Final = 64 << 20
_DEADLINE_S: Final = 10.0
# A launch this old should have left a record.
_BACKLOG_S: Final = 10.0
# Source: pytorch/kineto issue 1165. First CUPTI with right times of graph kernels: CUDA 13.1 Update 1.
_RIGHT_GRAPH_TIMES: Final = 130101
# Source: parca-dev/parcagpu issue 23. Releases whose device memory grows with graphs: CUDA 13.0.
_GROWING_GRAPHS: Final = range(130000, 130100)
# Counters of the trust report, and the native figures that they show.
# As native/gpu/activity.h: below these, the number of a stream; above, of its context.
_STREAM_BITS: Final = 20
OTHER_LIBRARY: Final = "'{}' cannot reach the driver, so '{}' is used"
_COUNTERS: Final = {
    "gpu_launches": "launches",
    "gpu_records_received": "received",
    "gpu_records_matched": "matched",
    "gpu_records_unmatched": "unmatched",
    "gpu_records_dropped": "dropped",
    "gpu_records_unknown": "unknown_records",
}


@dataclass(frozen=True, slots=True)
class Interface:
    """A vendor's profiling interface, as the native core names it, with its libraries.

    Attributes:
        name: "cupti", "rocprofiler" or "roctracer".
        profiler: library of the interface, for the dynamic linker.
        driver: library of the driver or run time, likewise.
        warning: what a user should know about the choice of library; "" for nothing.
        others: libraries to try in turn where `profiler` cannot reach the driver.
    """

    name: str
    profiler: str
    driver: str
    warning: str = ""
    others: tuple[str, ...] = ()


class FrameworkWatch:
    """Calls back once, when the first GPU framework has been loaded, or at once if one is."""

    def __init__(self, on_load: Callable[[str], bool], on_failure: Callable[[str], None]) -> None:
        """Remember the callbacks.

        Args:
            on_load: gets the framework's name; returns whether waiting is over.
            on_failure: called with what `on_load` raised.
        """
        self._on_load = on_load
        self._is_over = False
        self._hooks = [
            ImportHook(name, lambda name=name: self._loaded(name), on_failure)  # type: ignore[misc]
            for name in GPU_FRAMEWORKS
        ]

    def install(self) -> None:
        """Begin to wait."""
        for hook in self._hooks:
            if not self._is_over:
                hook.install()

    def notice(self) -> None:
        """Call back now if a framework was loaded in a way that its hook did not see."""
        for hook in self._hooks:
            hook.notice()

    def cancel(self) -> None:
        """Stop waiting."""
        self._is_over = True
        for hook in self._hooks:
            hook.cancel()

    def _loaded(self, name: str) -> None:
        if self._is_over or not self._on_load(name):
            return
        self._is_over = True
        for hook in self._hooks:
            hook.cancel()


class GpuCollection:
    """One native collector during a session: begin, flush, end and outcome."""

    def __init__(self, vendor: str) -> None:
        self._vendor = vendor
        self._interface: Interface | None = None
        self._problems: list[str] = []
        self._remarks: list[str] = []
        self._refusal = ""
        self._version = 0
        self._is_over = False

    @property
    def has_begun(self) -> bool:
        """Whether the native collector was started, or refused."""
        return self._interface is not None

    def begin(self, interface: Interface, options: SessionOptions) -> None:
        """Start the native collector; a refusal is kept for `outcome`."""
        self._interface = interface
        if interface.warning:
            self._problems.append(interface.warning)
        self._refusal = _native.gpu_start(
            interface.name, interface.profiler, interface.driver, *settings(interface, options)
        )

    def adopt(self, interface: Interface, refusal: str) -> None:
        """Go on with the native collector that was started elsewhere, or refused."""
        self._interface = interface
        self._refusal = refusal
        self.note(interface.warning)

    def uses(self, library: str) -> None:
        """Say which library was used where the interface's own could not reach the driver."""
        interface = self._interface
        if interface is not None and not self._refusal and library != interface.profiler:
            self.remark(OTHER_LIBRARY.format(interface.profiler, library))
            self._interface = dataclasses.replace(interface, profiler=library)

    def note(self, problem: str) -> None:
        """Remember what makes the figures incomplete; "" for nothing."""
        if problem and problem not in self._problems:
            self._problems.append(problem)

    def remark(self, text: str) -> None:
        """Remember what a reader should know although the figures are complete."""
        if text not in self._remarks:
            self._remarks.append(text)

    def refuse(self, reason: str) -> None:
        """Remember why nothing can be begun."""
        self._refusal = reason

    def flush(self) -> None:
        """Bring complete records into the tree."""
        if self._is_collecting() and not self._is_over:
            self.note(_native.gpu_flush(self._native_name()))

    def end(self) -> None:
        """Stop the native collector."""
        if self._is_collecting() and not self._is_over:
            self._is_over = True
            self.note(_native.gpu_stop(self._native_name()))

    def outcome(self, waiting_for: str, *, was_used: bool = False) -> Outcome:
        """Say how it went.

        Args:
            waiting_for: the reason, if nothing was begun.
            was_used: a framework took memory of the GPU.
        """
        if self._interface is None and not self._refusal:
            return Outcome(Status.OFF, waiting_for)
        details: dict[str, str | int | float] = {}
        if self._interface is not None:
            details = {"interface": self._interface.name, "library": self._interface.profiler}
        if self._refusal:
            note = f"GPU work is missing from this profile: {self._refusal}"
            return Outcome(Status.UNAVAILABLE, self._refusal, details, notes=(note,))
        figures = _native.gpu_figures(self._native_name())
        details |= figures
        counters = {name: figures[figure] for name, figure in _COUNTERS.items()}
        counters |= {"gpu_errors": 0}
        error = error_of(figures, is_over=self._is_over, was_used=was_used)
        lost = tuple(losses(figures, is_over=self._is_over))
        notes = (
            *(loss.text for loss in lost),
            *self._remarks,
            *_graph_notes(self._native_name(), figures),
        )
        problems = [*self._problems, *_native.gpu_lacking(self._native_name())]
        problems += [loss.text for loss in lost if loss.is_degrading]
        if error:
            counters["gpu_errors"] = 1
            notes = (error, *notes)
            problems.insert(0, error)
        status = Status.DEGRADED if problems else Status.RAN
        return Outcome(status, "; ".join(problems), details, counters, notes)

    def sections(self) -> dict[str, bytes]:
        """Return busy and idle time of the devices, as JSON."""
        if not self._is_collecting():
            return {}
        payload = {
            "device_vendor": self._vendor,
            "interface": self._native_name(),
            "interface_version": _native.gpu_figures(self._native_name())["version"],
            "devices": [
                _device(device, self._native_name()) | self._properties(device["device"])
                for device in _native.gpu_devices(self._native_name())
            ],
        }
        return {f"gpu_{self._vendor}": json.dumps(payload).encode()}

    def _is_collecting(self) -> bool:
        return self._interface is not None and not self._refusal

    def _properties(self, device: int) -> dict[str, object]:
        driver = self._interface.driver if self._interface else ""
        return {
            "name": device_name(self._native_name(), driver, device),
            "memory_bytes": memory_bytes(self._native_name(), driver, device),
            "multiprocessor_count": multiprocessors(self._native_name(), driver, device),
        }

    def _native_name(self) -> str:
        return self._interface.name if self._interface else ""


def _graph_notes(interface: str, figures: dict[str, int]) -> list[str]:
    notes = []
    if figures["graph_launched"]:
        notes.append(
            f"{figures['graph_launched']} kernels ran in graphs captured before profiling began: "
            "they are shown under the replay, not under the code that captured them"
        )
    if figures.get("graphs_out_of_order"):
        notes.append(
            f"{figures['graphs_out_of_order']} graphs ran another number of kernels than was "
            "captured: the kernels cannot be matched, so they are shown under the replay"
        )
    if figures["silent_replays"]:
        notes.append(
            f"{figures['silent_replays']} replays of CUDA graphs ran nothing that leaves a record: the "
            "graphs have no kernels, copies and memsets, or only below conditions that never held"
        )
    if device_graphs := figures.get("device_graphs", 0):
        notes.append(
            f"the program made {device_graphs} CUDA graphs that the GPU may launch itself: CUPTI records "
            "nothing of what the GPU launches, so the time of those launches is missing"
        )
    has_graphs = figures["graph_captured"] + figures["graph_launched"] > 0
    if interface == "cupti" and has_graphs:
        notes += _graph_faults(figures["version"])
    return notes


def _graph_faults(cupti: int) -> list[str]:
    """Return known faults of a CUPTI release with CUDA graphs."""
    notes = []
    if cupti < _RIGHT_GRAPH_TIMES:
        notes.append(
            "times of kernels in CUDA graphs may be wrong: CUPTI before CUDA 13.1 Update 1 reports "
            "some of them wrongly (pytorch/kineto issue 1165)"
        )
    if cupti in _GROWING_GRAPHS:
        notes.append(
            "CUPTI of CUDA 13.0 may take more and more device memory while graphs are replayed "
            "(parca-dev/parcagpu issue 23)"
        )
    return notes


def _device(device: GpuDevice, interface: str) -> dict[str, object]:
    return {
        "device": device["device"],
        "span_ns": device["last_ns"] - device["first_ns"],
        "busy_ns": device["busy_ns"],
        "idle_ns": device["idle_ns"],
        "late_ns": device["late_ns"],
        "stream_busy_ns": {
            _stream(number, interface): busy for number, busy in device["stream_busy_ns"].items()
        },
    }


def _stream(number: int, interface: str) -> str:
    """Return a stream's name: its number, with CUPTI below the number of its context."""
    if interface != "cupti":
        return str(number)
    return f"{number >> _STREAM_BITS}:{number & (1 << _STREAM_BITS) - 1}"


def settings(
    interface: Interface, options: SessionOptions
) -> tuple[int, int, float, float, bool, bool, list[str]]:
    """Return how a native collector is started, in the order of its arguments."""
    return (
        _size("DEEPCONTEXT_GPU_BUFFER_BYTES", _BUFFER_BYTES[interface.name]),
        _size("DEEPCONTEXT_GPU_POOL_BYTES", _POOL_BYTES),
        deadline_s(),
        _seconds("DEEPCONTEXT_GPU_BACKLOG_S", _BACKLOG_S),
        options.stalls,
        options.gpu_calls,
        list(interface.others),
    )


def deadline_s() -> float:
    """Return how long a call of a vendor's library may take."""
    return _seconds("DEEPCONTEXT_GPU_DEADLINE_S", _DEADLINE_S)


def is_mapped(stem: str) -> bool:
    """Return whether the program has loaded a library whose name begins with `stem`."""
    return bool(_native.gpu_mapped_libraries(stem))


def torch_build(kind: str) -> str | None:
    """Return the CUDA or HIP version the loaded torch was built for; None for none or no torch."""
    version = getattr(sys.modules.get("torch"), "version", None)
    value = getattr(version, kind, None)
    return value if isinstance(value, str) else None


def _size(variable: str, default: int) -> int:
    text = os.environ.get(variable, "")
    return int(text) if text.isdigit() else default


def _seconds(variable: str, default: float) -> float:
    try:
        return float(os.environ[variable])
    except (KeyError, ValueError):
        return default
