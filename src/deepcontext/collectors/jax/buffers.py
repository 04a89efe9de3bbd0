"""Memory of JAX arrays: periodically, which arrays are alive and which call made each.

The native side notes which call made which array. This file periodically asks the backends which
arrays are alive (`native/jax/live_arrays.cpp`): from a thread of the profiler, and at the ends of
steps, where a comparison with earlier steps shows growth. The cost of these checks limits how often
they run. Does not see what compiled programs need while they run; `compilation.py` reads their
statistics.
"""

from __future__ import annotations

import atexit
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from deepcontext import _native
from deepcontext.collectors.shared.internal_thread import NO_THREAD, InternalThread
from deepcontext.collectors.shared.program_lock import ProgramLock
from deepcontext.collectors.shared.wake import Wake
from deepcontext.profiler.format.memory_metrics import GROWTH
from deepcontext.profiler.format.metric import Aggregation, MetricDescriptor
from deepcontext.profiler.recording import clock

if TYPE_CHECKING:
    from deepcontext.collectors.jax.names import Names

_EVERY_S: Final = 0.1
_MOST_COST: Final = 1 / 500  # of the elapsed time
_FREE_NS: Final = 50_000_000  # allowed in addition, for the ends of steps in a short program
_CHUNK: Final = 1000  # arrays weighed at once, while other threads wait for the GIL
_PEAK: Final = "peak_bytes_in_use"  # as in jax's Device.memory_stats()

METRICS: Final = (
    MetricDescriptor(
        "jax_live_bytes",
        "bytes",
        Aggregation.SUM,
        "buffers of JAX arrays made here that were alive when the profile was written",
    ),
    MetricDescriptor(
        "jax_peak_bytes",
        "bytes",
        Aggregation.SUM,
        "buffers of JAX arrays made here that were alive at the check at which JAX arrays held the "
        "most",
    ),
    *GROWTH,
)


@dataclass(slots=True)
class BufferCounts:
    """Figures about the memory of arrays, as stored in the profile.

    Attributes:
        looks: number of checks of living arrays.
        look_ns: processor time of all checks.
        live_arrays: number of arrays alive at the last check.
        live_bytes: size of these arrays.
        peak_bytes: the largest size at any check.
        step_looks: number of checks at ends of steps.
        growth_since_look: the check at an end of a step since which growth is counted; 0 for none.
        device_peak_bytes: by device, the peak that its allocator reports, with running programs;
            only of devices whose backend reports it.
    """

    looks: int = 0
    look_ns: int = 0
    live_arrays: int = 0
    live_bytes: int = 0
    peak_bytes: int = 0
    step_looks: int = 0
    growth_since_look: int = 0
    device_peak_bytes: dict[str, int] = field(default_factory=dict)


class Buffers:
    """Checks which arrays are alive, from a thread of the profiler and on request."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._lock = ProgramLock()
        self._wake = Wake()
        self._thread = InternalThread(self._run)
        self._is_watching = False
        self._begun = 0.0
        self._last_look = 0.0
        self.counts = BufferCounts()
        self.failure = ""

    def install(self) -> None:
        """Watch from now on."""
        array_type = self._names.find("array_type")
        if array_type is None or self._names.find("backends") is None:
            return
        containers = self._names.find("container_types")
        self.failure = _native.jax_watch_arrays(
            array_type.value, containers.value if containers else None
        )
        if self.failure:
            return
        self._is_watching = True
        self._begun = clock.monotonic_s()
        # Runs before jax's handler, which removes the backends: handlers run last registered first.
        atexit.register(self.look_last)
        if not self._thread.start():
            self.failure = NO_THREAD

    def uninstall(self) -> None:
        """End the thread."""
        if self._is_watching:
            self._is_watching = False
            atexit.unregister(self.look_last)
            _native.jax_unwatch_arrays()
            self._wake.set()
            self._thread.join()

    def on_step(self) -> None:
        """A step has ended: check the arrays, unless checks have cost too much so far."""
        allowed_ns = _FREE_NS + _MOST_COST * 1e9 * (clock.monotonic_s() - self._begun)
        if self.counts.look_ns < allowed_ns and not self.failure:
            self.look(is_step_end=True)

    def look(self, *, is_step_end: bool = False) -> None:
        """Find out what is alive now."""
        if not self._is_watching or not _native.is_recording():
            return
        with self._lock:
            begun = clock.thread_cpu_ns()
            try:
                self._look(is_step_end=is_step_end)
            except Exception as error:  # noqa: BLE001  an odd backend is a reason, never a crash
                self.failure = f"{type(error).__name__}: {error}"
            self.counts.look_ns += clock.thread_cpu_ns() - begun
            self._last_look = clock.monotonic_s()

    def look_last(self) -> None:
        """Find out what is alive now, and what the devices say."""
        if self._is_watching and _native.is_recording():  # not in a forked child
            self.look()
            self._ask_devices()

    def _run(self) -> None:
        wait_s = _EVERY_S
        while not self._wake.wait(wait_s) and not self.failure:
            before = self.counts.look_ns
            if clock.monotonic_s() - self._last_look >= _EVERY_S:  # no step has ended since
                self.look()
            wait_s = max(_EVERY_S, (self.counts.look_ns - before) / 1e9 / _MOST_COST)

    def _look(self, *, is_step_end: bool) -> None:
        clients = self._clients()
        if not clients:
            return  # none yet, or no longer: jax removes them when the program exits
        self.counts.looks += 1
        _native.jax_begin_weighing()
        for client in clients:
            arrays = client.live_arrays()
            is_device = client.platform != "cpu"
            for start in range(0, len(arrays), _CHUNK):
                _native.jax_weigh_arrays(arrays[start : start + _CHUNK], is_device)
        counts = self.counts
        counts.live_arrays, counts.live_bytes = _native.jax_finish_weighing(is_step_end)
        counts.step_looks, counts.growth_since_look = _native.jax_array_growth()
        counts.peak_bytes = max(counts.peak_bytes, counts.live_bytes)

    def _ask_devices(self) -> None:
        """Read the peaks that the allocators of devices keep; the CPU's allocator keeps none."""
        for client in self._clients():
            for device in client.local_devices():
                try:
                    statistics: dict[str, int] = device.memory_stats() or {}
                except Exception:  # noqa: BLE001, S112  not every backend implements it
                    continue
                if _PEAK in statistics:
                    self.counts.device_peak_bytes[str(device)] = int(statistics[_PEAK])

    def _clients(self) -> list[Any]:
        backends = self._names.find("backends")
        return list(dict(backends.value).values()) if backends else []
