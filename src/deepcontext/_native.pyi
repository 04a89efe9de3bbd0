"""Typed face of the native core; the code is under native/bindings.

Columns are bytes objects: little-endian arrays. None of these functions imports numpy, because they
run inside the program under test.
"""

from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any, Final, Literal, TypedDict, TypeVar

_Result = TypeVar("_Result")

VERSION: Final[str]

class FrameColumns(TypedDict):
    """Frames of a tree, one row each; `name` and `file` index into `strings`."""

    strings: list[str]
    kind: bytes  # uint8
    name: bytes  # uint32
    file: bytes  # uint32
    line: bytes  # uint32

class NodeColumns(TypedDict):
    """Nodes of a tree, depth-first; node 0 is the root."""

    parent: bytes  # int32, root: -1
    frame: bytes  # uint32
    phase: bytes  # uint8
    subtree_end: bytes  # int32

class TreeReading:
    """The threads' trees, merged at one moment."""

    def frame_columns(self) -> FrameColumns: ...
    def node_columns(self, frame_phase: bytes) -> NodeColumns:
        """`frame_phase` has one Phase (uint8) a frame, 0 for "as its parent"."""
    def metric_names(self) -> list[str]:
        """Name the metrics that may have rows."""
    def metric_fields(self, metric: str) -> list[str]:
        """Name the columns of a metric, as in `schema.ROW_TYPES`."""
    def metric_column(self, metric: str, field: str) -> bytes:
        """Make a column of the rows of a metric, in ascending order of node."""
    def windows(self) -> list[WindowFacts]:
        """List the windows up to the last cut."""
    def window_rows(self, window: int) -> list[tuple[str, bytes, bytes, bytes]]:
        """Make (metric, node_step, count, total) for each metric with rows in a window; three columns."""
    def cut_costs(self) -> dict[str, int]:
        """Say what cutting into windows has cost, as counters of the trust report."""
    def exemplars(self) -> list[ExemplarFacts]:
        """List the steps that were kept whole."""
    def exemplar_lanes(self, exemplar: int) -> list[tuple[LaneFacts, bytes, bytes, bytes]]:
        """Make (facts, node_step, end_step, duration_ns) for each thread and stream; three columns."""
    def exemplar_costs(self) -> dict[str, int]:
        """Say what keeping steps has cost, as counters of the trust report."""
    def estimated_metrics(self) -> list[str]:
        """Name the metrics whose rows are estimated at each reading, so that windows have none."""

class Counters(TypedDict):
    """What the recording threads counted, summed over them."""

    operator_events: int
    backward_links_found: int
    backward_links_missed: int
    levels_refused: int
    scopes_refused: int
    lost_events: int
    paths_cut: int
    clock_steps_back: int
    address_lookups: int
    contexts_refused: int
    names_refused: int
    functions_refused: int
    nodes: int
    threads: int
    threads_joined: int
    hook_samples: int
    hook_ns: float

class StepsFound(TypedDict):
    """What ends steps, where, and what is known about the times between the ends of two steps."""

    source: int  # StepSource of native/core/steps.h
    path: list[tuple[int, str, str, int]]
    steps: int
    count: int
    total_ns: float
    minimum_ns: float
    maximum_ns: float
    m2: float
    bins: list[tuple[float, int]]  # of a sketch: a duration within 1 %, in ns, and how many steps
    parts: list[
        tuple[int, int, int, int]
    ]  # count, total, minimum, maximum of consecutive steps, in ns
    slowest: list[tuple[int, int, int]]  # number, end since the session's start, duration, in ns
    # The same of steps of 1.5 times the median, and the part without waits for a processor, 0: unknown.
    slow: list[tuple[int, int, int, int]]
    slow_count: int
    slow_total_ns: int

class WindowFacts(TypedDict):
    """One window of the run; times in ns, `begin_ns` and `end_ns` since the first window began."""

    first_step: int
    end_step: int
    begin_ns: int
    end_ns: int
    cpu_user_ns: int
    cpu_system_ns: int
    timed_steps: int
    step_total_ns: int
    step_minimum_ns: int
    step_maximum_ns: int
    step_m2: float

class ExemplarFacts(TypedDict):
    """One step that was kept whole; times in ns since the session's start."""

    number: int
    begin_ns: int
    end_ns: int
    reasons: int  # bits of ExemplarReason in native/core/exemplars.h

class LaneFacts(TypedDict):
    """One thread, or one stream of a device, in an exemplar."""

    name: str
    recorder: int
    is_device: bool
    device: int
    stream: int
    known_from_ns: int  # since the step's begin; 0: all spans are known

# -- session
def begin(node_limit: int, takes_spans: bool = ...) -> None: ...
def end() -> None: ...
def is_recording() -> bool: ...
def read_tree(thread_names: Sequence[tuple[int, str]]) -> TreeReading: ...
def counters() -> Counters: ...
def start_windows(metrics: Sequence[str]) -> None:
    """Cut the run into windows from now on, with the sums of these metrics and of operators."""

def stop_windows() -> None: ...
def are_windows_refused() -> bool: ...
def steps() -> StepsFound: ...
def enter_scope(name: str) -> int: ...
def pause_scope(token: int) -> int: ...
def leave_scope(token: int, earlier_ticks: int = ...) -> None: ...
def count_event(name: str) -> None: ...

# -- Python call paths
def watched_call(
    called: object,
    before: Callable[..., object] | None = None,
    after: Callable[..., object] | None = None,
) -> Any:
    """Return a callable that stands for `called` and leaves no frame on the Python stack.

    Args:
        called: gets the arguments; its attributes are the attributes of the result.
        before: called first, with the positional arguments; returns a token.
        after: called last, with the token, the result (None if `called` raised) and the positional
            arguments.
    """

def add_code_rule(
    match: Literal["exact", "prefix", "suffix"],
    file: str,
    qualified_name: str,
    role: Literal["hidden", "scope_plumbing", "module_call", "folded"],
    marker: str,
) -> None: ...
def watch_code() -> str:
    """Return "" or the reason why destroyed code objects cannot be noticed."""

def unwatch_code() -> None: ...
def walk_current_frames() -> list[tuple[CodeType, int]]: ...
def line_of_instruction(table: bytes, first_line: int, offset: int) -> int: ...
def set_module_call(code: CodeType | None) -> None: ...
def watch_module_calls(function: object) -> None: ...
def unwatch_module_calls() -> None: ...
def set_module_resolver(resolver: Callable[[list[list[object]]], None] | None) -> None: ...
def resolve_modules() -> None: ...
def name_module(address: int, label: str) -> None: ...
def forget_module(address: int) -> None: ...
def unnamed_modules() -> list[int]: ...
def objects_at(addresses: Sequence[int]) -> list[object]:
    """Return the living objects at these addresses that the garbage collector knows."""

def gradient_addresses(
    tensors: list[Any], tensor: type, strided: object, is_deferred: object, *backward: CodeType
) -> list[int] | None:
    """Return where the tensors' gradients are; None while a thread runs one of the functions."""

def objects_of(*kinds: type) -> list[Any]:
    """Return the living direct instances of types that the garbage collector knows."""

def note_gc(phase: str, info: dict[str, int]) -> None:
    """Count a collection, as one of `gc.callbacks`."""

def tensor_holders(
    tensor: type, fewest: int, most: int, seconds: float
) -> tuple[list[tuple[Any, int]], bool]:
    """Return the objects that hold most direct instances of a type, and whether all were searched.

    Frames of functions that have ended are among them. Runs no Python code.
    """

def tensors_of(holder: object, tensor: type, stride: int, most: int) -> list[Any]:
    """Return every `stride`-th direct instance of a type that an object and its small parts refer to.

    Runs no Python code, and leaves an ended frame's variables as they are.
    """

def object_referrers(
    targets: list[Any], most: int, seconds: float
) -> tuple[list[tuple[int, Any]], bool]:
    """Return (position in `targets`, referrer), and whether all objects were searched."""

def holding_variables(targets: list[Any]) -> list[tuple[int, CodeType, str]]:
    """Return (position in `targets`, function, variable) of running functions on all threads."""

def clear_modules() -> None: ...

# -- clocks and descriptors, whatever the program has replaced or used up
def unix_ns() -> int: ...
def monotonic_ns() -> int: ...
def process_cpu_ns() -> int: ...
def thread_cpu_ns() -> int: ...
def without_tracing(work: Callable[[], object]) -> object:
    """Call `work`; functions of `sys.settrace` and `sys.setprofile` do not see it."""

def has_free_descriptor() -> bool: ...
def run_with_own_descriptors(work: Callable[[], None]) -> bool:
    """Run `work` on another thread, where only the standard streams are open; False if not possible."""

# -- snapshots
def start_watcher(
    callback: Callable[[], None], first_seconds: float, interval_seconds: float
) -> None: ...
def set_watcher_interval(seconds: float) -> None: ...
def stop_watcher() -> None: ...
def watcher_threads_refused() -> int:
    """Return how often in its last run the watcher got no thread: then it writes nothing."""

def run_operation(work: Callable[[], _Result], *, is_exclusive: bool = False) -> _Result:
    """Run `work` when all operations called earlier are complete; see `recording/operations.py`."""

def try_operation(work: Callable[[], _Result]) -> _Result | None:
    """Run `work` on this thread as an exclusive operation; return None if there is another one."""

def is_in_operation() -> bool:
    """Return whether the calling thread is inside an exclusive operation."""

def waits_for_operation(thread: int) -> bool:
    """Return whether a thread, by its identifier, waits until an operation is complete."""

class PythonThread:
    """A thread that calls a function once, whatever the program has made of `_thread`.

    A start returns False if the process may have no more threads. What the function raises is printed as
    of any thread.
    """

    def start_as_internal(self, work: Callable[[], None]) -> bool:
        """Start it with the profiler's name; it takes no signals, and samples leave it out."""

    def start_as_caller(self, work: Callable[[], None]) -> bool:
        """Start it with name and signal mask of this thread; in an operation, of the operation's caller."""

    def join(self, seconds: float) -> bool:
        """Wait for its end; False if it has not ended after `seconds`. True if it was never started."""

def pause_watcher() -> None: ...
def resume_watcher() -> None: ...
def set_exit_status(status: int) -> None:
    """Let the process end with this status if its program succeeds; 0 leaves it alone."""

# -- native frames
class NativeCounts(TypedDict):
    """Walks through native stacks since the session began, all threads together."""

    walks: int
    frames: int
    by_libgcc: int
    no_rule: int
    bad_stack: int
    too_deep: int

class NativeFile(TypedDict):
    """An executable or library that native functions were seen in."""

    file: str
    build_id: str
    functions: int
    named: int

def native_is_supported() -> bool: ...
def native_start() -> None: ...
def native_stop() -> None: ...
def native_add_plumbing(beginning: str) -> None: ...
def native_counts() -> NativeCounts: ...
def native_files() -> list[NativeFile]: ...

# -- CPU sampling
class SamplerCounts(TypedDict):
    """What became of the samples of the running or last session."""

    rounds: int
    running: int
    waiting: int
    lost: int
    cut: int
    unanswered: int
    astray: int
    waits_ended: int
    not_inside: int
    threads: int
    threads_refused: int
    internal_cpu_ns: int

class PerfCounts(TypedDict):
    """What became of the counters of the running or last session."""

    threads: int
    threads_refused: int
    error: int
    enabled_ns: int
    running_ns: int

def start_sampler(rate_hz: float) -> str:
    """Return "" or the reason why nothing can be sampled. Needs `watch_code`."""

def sampler_begun_ns() -> int:
    """Return since when the main thread's time is charged, by `monotonic_ns`. Needs a start."""

def stop_sampler() -> int:
    """Stop sampling and charge what is not charged yet; return up to when, by `monotonic_ns`."""

def sampler_counts() -> SamplerCounts: ...
def ask_for_perf_events(names: Sequence[str]) -> list[tuple[str, int, bool]]:
    """Try each event: (name, why not as an errno or 0, whether only outside the kernel)."""

def choose_perf_events(names: Sequence[str]) -> list[tuple[str, int, bool]]:
    """The same, and have the sampler read those that can be from its next start on."""

def perf_counts() -> PerfCounts: ...
def sampler_limitation() -> str:
    """Return "" or why running threads cannot be asked for their place."""

def sampler_knows_gil() -> bool: ...

# -- PyTorch
class CollectiveRows(TypedDict):
    """Collectives of the session, see `format/rank_collectives.py`.

    groups: address of the process group, or 0, its name if its work runs on a device, and its
    collectives, by index; ended, ended_on_device: whose work ran on the host and on a device; unknown:
    collectives whose group could not be read; operations: names by index; rows: group, number, order,
    operation, duration and own time in ns, bytes, exposed time in ns or -1; places: frames (kind, name,
    file, line), outermost first; samples: order, place, doing, ns.
    """

    groups: list[tuple[int, str, int]]
    ended: int
    ended_on_device: int
    unmatched: int
    unknown: int
    operations: list[str]
    rows: list[tuple[int, int, int, int, int, int, int, int]]
    places: list[list[tuple[int, str, str, int]]]
    samples: list[tuple[int, int, int, int]]

def torch_collectives() -> CollectiveRows: ...
def torch_group_address(group: object) -> int:
    """Return the address of the C++ object of a process group; 0 if it has none."""

def torch_tell_groups_apart(default_group: int) -> bool:
    """Number the collectives of each group by itself from now on; False if that cannot be."""

class NcclCalls(TypedDict):
    """Collectives of NCCL, see `format/nccl.py`.

    communicators: id, ranks, rank, nodes; calls: sums by communicator, operation, algorithm, protocol and
    size; dropped: events that found a table full or in use; late: events of calls that were forgotten.
    """

    communicators: list[tuple[int, int, int, int]]
    calls: list[dict[str, int | str]]
    dropped: int
    late: int

def nccl_start() -> None:
    """Count what NCCL says of its collectives, if it has loaded this module as its profiler."""

def nccl_stop() -> None: ...
def nccl_read() -> NcclCalls: ...
def torch_load_group_calls() -> str:
    """Return "" or why it cannot be read what process groups of NCCL are about to run."""

def torch_load() -> str:
    """Return "" or the reason why this process's libtorch cannot be observed."""

def torch_has_shapes() -> bool: ...
def torch_find_tensor_keys(known: Sequence[tuple[int, int]], avoided: int) -> str:
    """Return "" or why tensors are not asked for sizes; `known` are addresses and keys of tensors."""

def torch_begin_calibration() -> str: ...
def torch_finish_calibration() -> str:
    """Return "" or why the observer cannot start; keep the layout that `torch_start` uses."""

def torch_start(with_shapes: bool, with_type_windows: bool) -> None: ...
def torch_stop() -> None: ...
def torch_is_observing() -> bool: ...

# -- memory
class MemoryPool(TypedDict):
    """One memory that allocations come from: the host's, or a device's."""

    name: str
    is_device: bool
    allocations: int
    alloc_bytes: int
    live_bytes: int
    peak_bytes: int
    peak_after_ns: int
    peak_step: int
    growth_bytes: int
    reserved_peak_bytes: int
    peak_role_bytes: list[int]

class MemorySummary(TypedDict):
    """What was allocated, by pool, and what could not be followed."""

    pools: list[MemoryPool]
    steps: int
    step_kind: str
    growth_since_step: int
    untracked: int
    untracked_bytes: int
    frees_missed: int

def memory_start() -> None: ...
def memory_stop() -> None: ...
def mark_step(is_kept: bool = ...) -> None: ...
def memory_set_role(addresses: Sequence[int], role: int) -> None:
    """Say what the living allocations at these addresses are for."""

def memory_summary() -> MemorySummary: ...
def memory_places(
    addresses: Sequence[int],
) -> list[tuple[list[tuple[int, str, str, int]], int, int, int, int]]:
    """Return (path, allocations, bytes, all living, all made) of contexts that made allocations."""

def torch_find_host_allocator() -> str:
    """Return "" or the reason why host memory cannot be watched."""

def torch_begin_host_check() -> None: ...
def torch_finish_host_check(address: int, size_bytes: int) -> str: ...
def torch_watch_devices() -> list[str]: ...
def torch_is_memory_watched() -> bool: ...

# -- GPUs; the name is that of the vendor's interface: "cupti", "rocprofiler" or "roctracer"
class GpuDevice(TypedDict):
    """Busy and idle time of one device; busy + idle = last - first."""

    device: int
    first_ns: int
    last_ns: int
    busy_ns: int
    idle_ns: int
    late_ns: int
    stream_busy_ns: dict[int, int]

def gpu_mapped_libraries(stem: str) -> list[str]:
    """Return the files mapped into this process whose names begin with `stem`."""

def gpu_probe(name: str, profiler: str, driver: str) -> tuple[int, str]:
    """Return the interface's version, and "" or the reason why it cannot be used."""

def gpu_start(
    name: str,
    profiler: str,
    driver: str,
    buffer_bytes: int,
    pool_bytes: int,
    deadline_s: float,
    backlog_s: float,
    with_stalls: bool,
    with_calls: bool,
    others: list[str],
) -> str:
    """Return "" or the reason why nothing is collected.

    `others`: libraries that CUPTI's collector tries where `profiler` cannot reach the driver.
    """

def gpu_arm(
    injection: str,
    profiler: str,
    driver: str,
    buffer_bytes: int,
    pool_bytes: int,
    deadline_s: float,
    backlog_s: float,
    with_stalls: bool,
    with_calls: bool,
    others: list[str],
    prefers_mapped: bool,
) -> str:
    """Start CUPTI's collector inside the program's cuInit; return why that is not possible, or ""."""

def gpu_disarm(seconds: float) -> None:
    """End the wait for cuInit; wait at most so long for a start in progress."""

def gpu_armed() -> tuple[int, str]:
    """Return 0 (not waiting), 1 (waiting), 2 (begun) or 3 (refused, with the reason)."""

def gpu_armed_with() -> tuple[str, list[str]]:
    """Return the libcupti that the collector was started with, and the copies mapped then."""

def gpu_cupti() -> str:
    """Return the libcupti that the collector used last."""

def gpu_yield(yielded: int) -> str:
    """Leave nothing (0), CUPTI's records (1) or all of CUPTI (2) to another tool.

    Returns what went wrong, or "".
    """

def gpu_is_driver_running(driver: str) -> bool:
    """Return whether the process has initialised CUDA; loads nothing."""

def gpu_flush(name: str) -> str: ...
def gpu_stop(name: str) -> str: ...
def gpu_is_running(name: str) -> bool: ...
def gpu_figures(name: str) -> dict[str, int]: ...
def gpu_lacking(name: str) -> list[str]: ...
def gpu_devices(name: str) -> list[GpuDevice]: ...

# -- JAX
def jax_function(
    name: str, qualified_name: str, file: str, first_line: int, shown: str = ""
) -> int:
    """Return the number of a jitted function; equal definitions have one number.

    Args:
        name: by which JAX knows the function and its programs.
        qualified_name: of the program's function.
        file: where it is defined.
        first_line: of the definition.
        shown: name of the program's function, if JAX's is another one.
    """

def jax_hook(function_object: object, function: int) -> str:
    """Put the dispatch hook into a jitted object; return "" or the reason why it cannot be."""

def jax_unhook(function_object: object) -> None: ...
def jax_is_hooked(function_object: object) -> bool: ...
def jax_set_marks(are_told: bool, is_jit_disabled: Callable[[], bool] | None) -> None:
    """Say whether `jax_mark_slow` and `jax_mark_launch` are going to be called."""

def jax_mark_slow(*arguments: object) -> None: ...
def jax_mark_launch() -> bool:
    """Count a program launched through Python for the open call; False when none is open."""

def jax_begin_call(function_object: object, function: int) -> None: ...
def jax_end_call(function_object: object, has_failed: bool, /) -> None: ...
def jax_count_call(function: int) -> None: ...
def jax_enter_callback(*arguments: object) -> int:
    """Return a token: a compiled program is about to call Python on this thread."""

def jax_leave_callback(token: int, *others: object) -> None: ...
def jax_calls() -> list[tuple[object, str, str, str, str, int, list[object], tuple[str, ...]]]:
    """Return the calling thread's open calls of one name, innermost first.

    Each as (object, JAX's name, shown name, qualified name, file, first line, arguments, names of the
    last of them).
    """

def jax_add_phase_time(marker: str, ns: int) -> None: ...
def jax_enter_span(kind: Literal["copy", "marker"], name: str) -> int: ...
def jax_leave_span(token: int, size_bytes: int) -> None: ...
def jax_watch_arrays(array_type: type, nodes: dict[type, Any] | None) -> str:
    """Note which call made each object of this type; return "" or the reason why it cannot be.

    `nodes` is jax's table of registered container types.
    """

def jax_search_arrays(result: object) -> tuple[int, int]:
    """Return how many arrays are found in a result, and how many objects are looked at for it."""

def jax_unwatch_arrays() -> None: ...
def jax_note_copied(result: object) -> None:
    """The arrays in `result` were copied to the device by the calling line."""

def jax_fed_back() -> list[tuple[str, int, int]]:
    """Return (function, launches looked at, those given a result of an earlier one)."""

def jax_begin_weighing() -> None: ...
def jax_weigh_arrays(arrays: list[Any], is_device: bool) -> None:
    """Add living arrays, of the host or of devices, to the sum under way."""

def jax_finish_weighing(is_step_end: bool) -> tuple[int, int]:
    """End the sum; return number and bytes of the arrays. At the end of a step it counts for growth."""

def jax_array_growth() -> tuple[int, int]:
    """Return how many ends of steps were looked at, and which of them growth is counted from."""

def jax_watch_host_arrays(array_type: type | None, other: type | None) -> None:
    """Count the bytes of jitted calls' arguments of these types, until it is called with None."""

def jax_hook_buffer(array_type: object) -> str:
    """Time requests for the buffers of arrays; return "" or the reason why they cannot be."""

def jax_unhook_buffer(array_type: object) -> None: ...
def jax_add_program(
    hlo: bytes,
    function: str,
    file: str,
    callers: Sequence[tuple[str, str]],
    label: str,
    processes: Sequence[int] = ...,
    own: int = ...,
    most_bytes: int = ...,
    devices: int = ...,
) -> int:
    """Read a serialised HloModuleProto; return the program's number, or -1 if it is none.

    `processes`: on which process each of its devices is, where that is known; `own`: this process,
    which runs it on `devices`.
    Its operations are left out when the programs so far take `most_bytes`.
    """

class ProgramCollectives(TypedDict):
    """Collectives of compiled programs, see `format/rank_collectives.py`.

    groups: name of the function, processes, collectives; left_out: functions whose collectives are in
    no row. The others are those of `CollectiveRows`.
    """

    groups: list[tuple[str, list[int], int]]
    operations: list[str]
    left_out: int
    rows: list[tuple[int, int, int, int, int, int, int, int]]
    places: list[list[tuple[int, str, str, int]]]
    samples: list[tuple[int, int, int, int]]

def jax_collectives() -> ProgramCollectives: ...
def jax_collective_launches() -> int:
    """Return how often functions with collectives of several processes were launched."""

def jax_program(uid: int) -> dict[str, Any] | None: ...
def jax_read_program(
    hlo: bytes, function: str, file: str, callers: Sequence[tuple[str, str]]
) -> dict[str, Any] | None:
    """Return what `jax_program` would, without keeping the program; None if it is none."""

def jax_open_window() -> None: ...
def jax_close_window() -> object:
    """Return the calls of jitted functions noted in the window, for `jax_add_window`."""

def jax_add_window(notes: object, xspace: bytes) -> tuple[bool, int, int, int, int, int]:
    """Take a window in; return what is in it.

    (readable, whole runs of its main program, launches, programs never seen whole, events)
    """

def jax_read_runs(xspace: bytes) -> list[dict[str, Any]]: ...
def jax_window_counts() -> dict[str, int]: ...
def jax_program_counts() -> dict[str, int]: ...
def jax_write_tree() -> tuple[
    dict[str, int],
    list[tuple[int, int, int, int]],
    list[tuple[int, int, int, int]],
    list[tuple[int, int]],
]:
    """Return counts by name, what ran on the device, calls of Python, and estimated counts.

    What ran, and calls of Python: (program, operation, executions, ns). Estimated counts: (program,
    operation) of both whose number of executions is an estimate.
    """

def jax_device_ranges() -> tuple[int, int]:
    """Return how many operations XLA marked on a GPU, and those of them of a known program."""

def jax_is_injected() -> bool:
    """Return whether a copy of NVTX in this process has taken the library for its listener."""

def jax_clear() -> None: ...
