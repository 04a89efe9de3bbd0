"""Build the fake vendor libraries and drive them: GPUs that do what a test says.

The libraries are real shared objects with the vendors' binary interfaces; `control.h` is the language
in which a test says what the device does. See README.md for how to use the kit outside of the tests.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SOURCES = Path(__file__).resolve().parent
_US = 1000
_BUILD_TIMEOUT_S = 600


@dataclass(frozen=True, eq=False)
class Vendor:
    """One vendor's interface and the libraries that stand for it.

    Attributes:
        name: the collector's name in a profile.
        interface: the vendor's interface, as the native core names it.
        profiler: file of the profiling library; it takes the scenario's orders.
        driver: file of the driver or run-time library.
        variables: environment variables that make deepcontext use them, by file.
        flush: function of the interface that hands over records.
        counts_drops: the interface tells how many records it lost.
        has_graph_nodes: records tell graph nodes apart.
        stays_registered: the tool's services stay declared after it has stopped.
    """

    name: str
    interface: str
    profiler: str
    driver: str
    variables: Mapping[str, str]
    flush: str
    counts_drops: bool = True
    has_graph_nodes: bool = True
    stays_registered: bool = False


CUPTI = Vendor(
    "nvidia",
    "cupti",
    "libcupti.so.13",
    "libcuda.so.1",
    {"DEEPCONTEXT_LIBCUPTI": "libcupti.so.13", "DEEPCONTEXT_LIBCUDA": "libcuda.so.1"},
    "cuptiActivityFlushAll",
)
ROCPROFILER = Vendor(
    "amd",
    "rocprofiler",
    "librocprofiler-sdk.so.1",
    "libamdhip64.so",
    {
        "DEEPCONTEXT_LIBROCPROFILER": "librocprofiler-sdk.so.1",
        "DEEPCONTEXT_LIBHIP": "libamdhip64.so",
    },
    "rocprofiler_flush_buffer",
    stays_registered=True,
)
ROCTRACER = Vendor(
    "amd",
    "roctracer",
    "libroctracer64.so.4",
    "libamdhip64.so",
    {"DEEPCONTEXT_LIBROCTRACER": "libroctracer64.so.4", "DEEPCONTEXT_LIBHIP": "libamdhip64.so"},
    "roctracer_flush_activity_expl",
    counts_drops=False,
    has_graph_nodes=False,
)
VENDORS = (CUPTI, ROCPROFILER, ROCTRACER)


def build(folder: Path, sanitizer: str = "", targets: Sequence[str] = ()) -> Path:
    """Compile the fakes, or those named, into `folder` and return it."""
    configure = ["cmake", "-S", str(SOURCES), "-B", str(folder)]
    if sanitizer:
        configure.append(f"-DDEEPCONTEXT_SANITIZE={sanitizer}")
    compile_them = ["cmake", "--build", str(folder), "-j2"]
    if targets:
        compile_them += ["--target", *targets]
    for command in (configure, compile_them):
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_BUILD_TIMEOUT_S
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return folder


def built(targets: Sequence[str] = ()) -> Path:
    """Compile the fakes into the checkout's `build/fakes`, once for all processes, and return it."""
    folder = SOURCES.parents[1] / "build" / "fakes"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a test process beside this one may compile
        return build(folder, targets=targets)


class FakeGpu:
    """A simulated device of one vendor, in this process.

    Durations are microseconds of device time; work is pending until `deliver`.
    """

    def __init__(self, folder: Path, vendor: Vendor, *, initialize: bool = True) -> None:
        """Load the vendor's libraries from `folder`, where `build` put them.

        Args:
            folder: of the libraries.
            vendor: whose libraries.
            initialize: start the driver now, as a framework does when it first uses a device.
        """
        self.vendor = vendor
        self._folder = folder
        self._driver = ctypes.CDLL(str(folder / vendor.driver))
        self._library = ctypes.CDLL(str(folder / vendor.profiler))
        for name in ("fake_count", "fake_walk_held"):
            getattr(self._library, name).restype = ctypes.c_uint64
        self._library.fake_capture_end.restype = ctypes.c_uint32
        self._library.fake_graph_instantiate.restype = ctypes.c_uint32
        self._library.fake_graph_create.restype = ctypes.c_uint32
        if initialize:
            self.initialize()

    def initialize(self) -> int:
        """Start the driver; return its result. CUDA's alone does something."""
        return int(self._driver.cuInit(0)) if self.vendor is CUPTI else 0

    def visible_devices(self) -> int:
        """Return how many devices CUDA's driver shows, -1 before it was started."""
        count = ctypes.c_int(0)
        return -1 if self._driver.cuDeviceGetCount(ctypes.byref(count)) else count.value

    def environment(self) -> dict[str, str]:
        """Return the variables with which a program uses this device."""
        return {key: str(self._folder / file) for key, file in self.vendor.variables.items()}

    def use(self) -> None:
        """Make this process use the device."""
        os.environ.update(self.environment())

    def reset(self) -> None:
        """Forget everything; the driver, which vendors may share, is this device's again."""
        self._library.fake_reset()
        self._driver.fake_set_synchronize(self._library.fake_synchronize)

    def version(self, number: int) -> None:
        """Behave as a version of the vendor's library."""
        self._library.fake_set_version(number)

    def fail(self, function: str, code: int) -> None:
        self._library.fake_fail(function.encode(), code)

    def hang(self, function: str, seconds: float) -> None:
        self._library.fake_hang(function.encode(), ctypes.c_uint64(int(seconds * 1e9)))

    def hold(self, tool: str, *, sharing: bool = False) -> None:
        """Let another tool hold the vendor's interface."""
        self._library.fake_hold(tool.encode(), int(sharing))

    def start_runtime(self) -> None:
        """Start the vendor's run time: tools of AMD can no longer register."""
        self._library.fake_start_runtime()

    def buffer_records(self, most: int) -> None:
        """Make the library hand over its records in such small portions."""
        self._library.fake_set_buffer_records(ctypes.c_uint64(most))

    def range_push(self, message: str) -> None:
        """Begin a range of the vendor's marking library."""
        self._library.fake_range_push(message.encode())

    def range_pop(self) -> None:
        self._library.fake_range_pop()

    def next_correlation(self, number: int) -> None:
        self._library.fake_set_next_correlation(ctypes.c_uint32(number))

    def drop(self, records: int) -> None:
        """Lose the next records."""
        self._library.fake_drop(ctypes.c_uint64(records))

    def lose_correlation(self, launches: int) -> None:
        """Let the next kernels' records carry no correlation id; roctracer's fake alone does."""
        self._library.fake_lose_correlation(ctypes.c_uint64(launches))

    def use_device(self, device: int) -> None:
        """Let what the calling thread launches from now on run on this one of four GPUs."""
        self._library.fake_set_device(ctypes.c_uint32(device))

    def launch_through(self, function: str) -> None:
        """Let the calling thread launch through this function of the vendor from now on."""
        if not self._library.fake_set_launch_function(function.encode()):
            raise ValueError(f"the fake has no '{function}'")

    def host_function(self) -> None:
        """Put a function of the host on a stream."""
        self._library.fake_host_function()

    def node(self, kind: str, stream: int = 7) -> None:
        """Give a capturing stream a node without a record: "memory", "host", "event", "child graph"."""
        if not self._library.fake_node(stream, kind.encode()):
            raise ValueError(f"no node is called '{kind}'")

    def use_context(self, number: int) -> None:
        """Let what the calling thread launches from now on be in this context of its device."""
        self._library.fake_set_context(ctypes.c_uint32(number))

    def was_waited_for(self, device: int) -> bool:
        """Return whether AMD's run time was asked to wait for a device since `reset`."""
        return bool(self._driver.fake_was_waited_for(device))

    def waited_contexts(self) -> int:
        """Return for how many contexts CUDA's driver was asked to wait since `reset`."""
        return int(self._driver.fake_waited_contexts())

    def memory(self, kind: str) -> None:
        """Let the calling thread's next copies be of this memory of the host."""
        if not self._library.fake_set_memory(kind.encode()):
            raise ValueError(f"no memory is called '{kind}'")

    def prefetch(self, size_bytes: int) -> None:
        """Move pages of managed memory."""
        self._library.fake_prefetch(ctypes.c_uint64(size_bytes))

    def shape(self, grid: int, block: int) -> None:
        """Let kernels that the calling thread launches from now on have this shape."""
        self._library.fake_set_shape(ctypes.c_uint32(grid), ctypes.c_uint32(block))

    def launch(self, kernel: str, us: float = 10, stream: int = 7, count: int = 1) -> None:
        """Launch a kernel, `count` times from one place."""
        self._library.fake_launch_many(
            kernel.encode(), stream, ctypes.c_uint64(int(us * _US)), ctypes.c_uint64(count)
        )

    def lazy_loading(self) -> None:
        """Let the first launch of each kernel load its code from now on."""
        self._library.fake_set_lazy_loading(1)

    @property
    def launch_function(self) -> object:
        """The C function that launches: (kernel's name, stream, ns)."""
        return self._library.fake_launch

    def copy(
        self, direction: str, size_bytes: int, us: float = 10, *, blocking: bool = False
    ) -> None:
        """Copy HtoD, DtoH, DtoD or PtoP."""
        self._library.fake_copy(
            direction.encode(),
            ctypes.c_uint64(size_bytes),
            ctypes.c_uint64(int(us * _US)),
            int(blocking),
        )

    def memset(self, size_bytes: int, us: float = 10) -> None:
        self._library.fake_memset(ctypes.c_uint64(size_bytes), ctypes.c_uint64(int(us * _US)))

    def dispatch(self, kernel: str, us: float = 10) -> None:
        """Dispatch what another thread launched; rocprofiler-sdk's fake alone does."""
        self._library.fake_dispatch(kernel.encode(), ctypes.c_uint64(int(us * _US)))

    def allocate(self, size_bytes: int, *, host: bool = False) -> None:
        """Take memory from the driver; rocprofiler-sdk's fake alone knows of it."""
        self._library.fake_allocate(ctypes.c_uint64(size_bytes), int(host))

    def synchronize(self, us: float = 10) -> None:
        """Let the host wait, in real time."""
        self._library.fake_synchronize(ctypes.c_uint64(int(us * _US)))

    def capture_begin(self, stream: int = 7) -> None:
        self._library.fake_capture_begin(stream)

    def capture_end(self, stream: int = 7) -> int:
        return int(self._library.fake_capture_end(stream))

    def instantiate(self, graph: int) -> int:
        return int(self._library.fake_graph_instantiate(graph))

    def instantiate_for_device(self, graph: int, *, with_parameters: bool = False) -> int:
        """Make an executable graph that the device may launch; CUDA's fake alone can."""
        function = self._library.fake_graph_instantiate_for_device
        return int(function(graph, int(with_parameters)))

    def replay(self, executable: int, stream: int = 7) -> None:
        self._library.fake_graph_launch(executable, stream)

    def destroy(self, graph: int) -> None:
        self._library.fake_graph_destroy(graph)

    def graph(self) -> int:
        """Make an empty graph, as a library does that puts nodes into it without a capture."""
        return int(self._library.fake_graph_create())

    def add_node(self, graph: int, kernel: str, us: float = 10) -> None:
        """Put a kernel into a graph."""
        self._library.fake_graph_add(graph, kernel.encode(), ctypes.c_uint64(int(us * _US)))

    def add_child(self, graph: int, child: int) -> None:
        """Put a clone of a graph into a graph, as a node."""
        self._library.fake_graph_add_child(graph, child)

    def update(self, executable: int, graph: int) -> bool:
        """Give an executable graph the kernels of a graph; False where their shapes differ."""
        return bool(self._library.fake_graph_update(executable, graph))

    def set_node(self, executable: int, place: int, kernel: str, us: float = 10) -> None:
        """Give one node of an executable graph another kernel."""
        self._library.fake_graph_set_node(
            executable, place, kernel.encode(), ctypes.c_uint64(int(us * _US))
        )

    def conditional_begin(self, body_stream: int, stream: int = 7) -> None:
        """Let `body_stream` capture the body of a conditional node of CUDA."""
        self._library.fake_conditional_begin(stream, body_stream)

    def conditional_end(self, body_stream: int) -> None:
        self._library.fake_conditional_end(body_stream)

    def iterations(self, executable: int, times: int) -> None:
        """Let replays run the bodies of conditional nodes so many times."""
        self._library.fake_set_iterations(executable, times)

    def deliver(self, shuffle: int = 0, threads: int = 1) -> None:
        """Complete what is pending; `shuffle` is a seed, 0 keeps the order."""
        if threads == 1:
            self._library.fake_deliver(shuffle)
        else:
            self._library.fake_deliver_on_threads(shuffle, threads)

    def hold_buffers(self, *, holding: bool) -> None:
        """Keep full buffers at the vendor's library until held no more."""
        self._library.fake_hold_buffers(int(holding))

    def walk_held(self) -> int:
        """Step through the records of the held buffers; for benchmarks."""
        return int(self._library.fake_walk_held())

    def unknown_records(self, count: int) -> None:
        self._library.fake_unknown_records(ctypes.c_uint64(count))

    def bad_times(self, *, started: bool = True) -> None:
        """Launch a kernel whose record ends before it begins, or has no times at all."""
        self._library.fake_bad_times(int(started))

    def load_module(self) -> None:
        """Load kernels with line information."""
        self._library.fake_load_module()

    def stall(self, kernel: str, reason: str, samples: int, line: int = 0) -> None:
        """Let the next window of PC sampling find `samples` waiting at a line of /src/kernel.cu."""
        self._library.fake_stall(kernel.encode(), reason.encode(), samples, line)

    def take_over(self) -> None:
        """Let another tool have the records from now on."""
        self._library.fake_take_over()

    def profiler_begin(self, *, older: bool = False) -> None:
        """Let torch.profiler record: Kineto since August 2026, or the older one."""
        self._library.fake_profiler_begin(int(older))

    def profiler_end(self) -> None:
        """Let torch.profiler stop."""
        self._library.fake_profiler_end()

    def subscriber_begin(self) -> int:
        """Let a tool that must subscribe begin, as Proton; return CUPTI's result."""
        return int(self._library.fake_subscriber_begin())

    def subscriber_end(self) -> None:
        """Let that tool hand over its records and end its subscription."""
        self._library.fake_subscriber_end()

    def give_back(self) -> None:
        """Let the tool that has the records register the buffers again that it replaced."""
        self._library.fake_give_back()

    def hold_incomplete(self, *, holding: bool) -> None:
        """Let every buffer hold a record without its times; only a forced flush hands it over."""
        self._library.fake_hold_incomplete(int(holding))

    def create_context(self) -> None:
        """Create the context, as a framework does at the first use of a device."""
        self._library.fake_create_context()

    def get_function(self, kernel: str) -> None:
        """Ask for a kernel by the driver's newer function, which loads its code."""
        self._library.fake_get_function(kernel.encode())

    def call_without_callback(self, us: float) -> None:
        """Call the driver in a way that no callback tells of."""
        self._library.fake_call_without_callback(ctypes.c_uint64(int(us * _US)))

    def destroy_context(self) -> None:
        """Destroy the device's context; the next call makes a new one."""
        self._library.fake_destroy_context()

    def count(self, what: str) -> int:
        """Return a figure of the fake library; `control.h` lists them."""
        return int(self._library.fake_count(what.encode()))
