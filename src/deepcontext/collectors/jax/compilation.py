"""Compiled programs: their operations, and when and why each was compiled.

Wraps the one function through which jax compiles; that function runs on the stack of the call that
needs the program. The backend lists programs that were compiled before the session. Does not keep
executables alive. Runs once a compilation, which takes milliseconds, so it may take microseconds.
"""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from deepcontext import _native
from deepcontext.collectors.jax import functions
from deepcontext.collectors.jax.reasons import EarlierCompilations, waiting_call
from deepcontext.collectors.shared.program_lock import ProgramLock
from deepcontext.profiler.recording import clock

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from deepcontext.collectors.jax.names import Found, Names
    from deepcontext.collectors.jax.reasons import JittedCall

_TRACE_EVENT: Final = "/jax/core/compile/jaxpr_trace_duration"
_LOWER_EVENT: Final = "/jax/core/compile/jaxpr_to_mlir_module_duration"
_HIT_EVENT: Final = "/jax/compilation_cache/cache_hits"
_MISS_EVENT: Final = "/jax/compilation_cache/cache_misses"
_MOST_RECORDS: Final = 1000  # bounds the memory of a program that never stops compiling
_MOST_PROGRAMS: Final = 2000  # likewise
# Limit for descriptions of operations, about 400 bytes each. Their JSON in the profile takes as
# much again.
_MOST_PROGRAM_BYTES: Final = 32 << 20
_MOST_FRAMES: Final = 40
_DEVICES: Final = 2  # index among the arguments of the function that compiles
_MEMORY_PARTS: Final = ("argument", "output", "alias", "temp", "generated_code")
_LIBRARY_PARTS: Final = ("/deepcontext/collectors/", "/jax/_src/", "/jaxlib/", "/contextlib.py")


@dataclass(frozen=True, slots=True)
class Compilation:
    """One compilation, as stored in the profile.

    Attributes:
        function: name of the jitted function.
        file: where it is defined; "" if not known.
        line: first line of the definition, 0 where not known.
        module: name of the compiled module.
        program: number of the program in the profile, -1 if it could not be read.
        reason: "first", "arguments", "new object", "cache" or "unknown".
        changes: what differs from the most similar earlier compilation, one sentence each.
        path: Python frames of the call, outermost first, as [function, file, line].
        trace_ns: time of tracing, in Python; 0 if jax does not report it.
        lower_ns: time of turning the trace into a module; 0 if jax does not report it.
        compile_ns: time in the compiler, or reading its cache.
        cached: whether the program came from the persistent cache: its lines are then those of the
            run that wrote the cache.
        is_stale: whether the program's lines lie outside the function as it is now.
    """

    function: str
    file: str
    line: int
    module: str
    program: int
    reason: str
    changes: tuple[str, ...]
    path: tuple[tuple[str, str, int], ...]
    trace_ns: int
    lower_ns: int
    compile_ns: int
    cached: bool
    is_stale: bool


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A program that is loaded.

    Attributes:
        executable: the program.
        backend: that runs it.
        processes: on which process each of its devices is; empty if that is not known, or if all are
            on one.
        compile_ns: time in the compiler, or reading its cache; 0 if not known.
    """

    executable: Any
    backend: Any
    processes: tuple[int, ...]
    compile_ns: int


class _Pending(threading.local):
    """Times of the compilation that the calling thread is running, by function name."""

    def __init__(self) -> None:
        self.trace_ns: dict[str, int] = {}
        self.lower_ns = 0
        self.is_hit = False


class CompileHook:
    """Reads every program as it is compiled."""

    def __init__(self, names: Names, on_program: Callable[[str], None]) -> None:
        self._names = names
        self._on_program = on_program  # called with the platform
        self._lock = ProgramLock()
        self._compile: Found | None = None
        self._replacement: object = None
        self._monitoring: Any = None
        self._pending = _Pending()
        self._earlier = EarlierCompilations()
        self._programs = 0
        self._written = 0  # programs in the text that follows
        self._programs_text = bytearray()
        self._memory: dict[int, dict[str, int]] = {}  # by number of the program
        self._existing: set[int] = set()
        self.records: list[Compilation] = []
        self.dropped = 0
        self.failures: list[str] = []
        self.cache_hits = 0
        self.cache_misses = 0

    def install(self) -> None:
        """Read compilations from now on, and programs that exist."""
        self._compile = self._names.find("compile")
        if self._compile is not None:
            self._replacement = self._compile.watch(
                self._before_compilation, self._after_compilation
            )
        listener = self._names.find("monitoring")
        if listener is not None:
            self._monitoring = listener.owner
            self._monitoring.register_event_duration_secs_listener(self._on_duration)
            self._monitoring.register_event_listener(self._on_event)
        self.add_existing()

    def uninstall(self) -> None:
        """Remove the hooks."""
        if self._compile is not None:
            self._compile.restore(self._replacement)
        for listeners in ("_event_duration_secs_listeners", "_event_listeners"):
            registered = getattr(self._monitoring, listeners, [])
            for listener in (self._on_duration, self._on_event):
                if listener in registered:
                    registered.remove(listener)

    def add_existing(self) -> None:
        """Read programs that are loaded: called once, or repeatedly if there is no hook."""
        backends = self._names.find("backends")
        for client in dict(backends.value if backends else {}).values():
            for executable in _live_executables(client):
                self._add_once(executable, client)

    def _add_once(self, executable: Any, client: Any) -> None:
        """Backends list the same programs each time they are asked."""
        key = hash(tuple(m.as_serialized_hlo_module_proto() for m in executable.hlo_modules()))
        if key not in self._existing:
            self._existing.add(key)
            compiled = _Compiled(executable, client, (), 0)
            self._add_program(compiled, call=None, callers=[])

    def payload(self) -> dict[str, Any]:
        """Return the content of the profile's section "jax" except the programs, in JSON types."""
        with self._lock:
            return {
                "compilations": [asdict(record) for record in self.records],
                "compilations_dropped": self.dropped,
                "functions": self._earlier.by_function(),
                "persistent_cache": {"hits": self.cache_hits, "misses": self.cache_misses},
            }

    def programs_json(self) -> bytes:
        """Return the programs as the text of a JSON list; each is encoded once."""
        while (payload := _native.jax_program(self._written)) is not None:
            payload["memory"] = self._memory.pop(self._written, {})
            self._programs_text += b"," if self._written else b"["
            self._programs_text += json.dumps(_compact(payload)).encode()
            self._written += 1
        return bytes(self._programs_text or b"[") + b"]"

    # -- while the program compiles

    def _before_compilation(self, *_arguments: object) -> int:
        self._pending.is_hit = False
        return clock.monotonic_ns()

    def _after_compilation(self, begun: int, executable: Any, *arguments: Any) -> None:
        compile_ns = clock.monotonic_ns() - begun
        if executable is None or not _native.is_recording():
            return  # it failed, or this is a forked child
        try:
            backend = arguments[0] if arguments else executable.client
            devices = arguments[_DEVICES] if len(arguments) > _DEVICES else None
            compiled = _Compiled(executable, backend, _processes(devices), compile_ns)
            self._on_compiled(compiled, sys._getframe(1))  # noqa: SLF001
        except Exception as error:  # noqa: BLE001  jax must get its program whatever fails here
            self._fail(f"a compiled program was not read: {type(error).__name__}: {error}")

    def _on_compiled(self, compiled: _Compiled, frame: FrameType | None) -> None:
        executable, compile_ns = compiled.executable, compiled.compile_ns
        stack = _stack(frame)
        call = waiting_call()
        trace_ns, lower_ns = self._take_times(call)
        for marker, spent in (
            ("jax: tracing", trace_ns),
            ("jax: lowering", lower_ns),
            ("jax: compiling", compile_ns),
        ):
            if spent:
                _native.jax_add_phase_time(marker, spent)
        callers = [(file, function) for function, file, _ in stack]
        program = self._add_program(compiled, call, callers)
        module = _module_name(executable)
        reason, changes = self._earlier.add(call, module, compile_ns + trace_ns + lower_ns)
        record = Compilation(
            function=call.name if call else module,
            file=call.file if call else "",
            line=call.first_line if call else 0,
            module=module,
            program=program,
            reason=reason,
            changes=tuple(changes),
            path=tuple(_user_frames(stack)),
            trace_ns=trace_ns,
            lower_ns=lower_ns,
            compile_ns=compile_ns,
            cached=self._pending.is_hit,
            is_stale=self._pending.is_hit and _is_stale(program, call),
        )
        with self._lock:
            if len(self.records) < _MOST_RECORDS:
                self.records.append(record)
            else:
                self.dropped += 1

    def _take_times(self, call: JittedCall | None) -> tuple[int, int]:
        pending = self._pending
        name = call.traced_name if call else ""
        trace_ns = pending.trace_ns.get(name, 0)
        if not call and pending.trace_ns:  # ahead of time: the trace that ended last
            trace_ns = list(pending.trace_ns.values())[-1]
        lower_ns = pending.lower_ns
        pending.trace_ns.clear()
        pending.lower_ns = 0
        return trace_ns, lower_ns

    def _add_program(
        self, compiled: _Compiled, call: JittedCall | None, callers: list[tuple[str, str]]
    ) -> int:
        program = -1
        if self._programs >= _MOST_PROGRAMS:
            self._fail(f"operations of programs after the first {_MOST_PROGRAMS} are not known")
            return program
        for module in compiled.executable.hlo_modules():
            self._programs += 1
            label = call.arguments.text() if call and call.arguments else ""
            program = _native.jax_add_program(
                module.as_serialized_hlo_module_proto(),
                call.qualified_name if call else "",
                call.file if call else "",
                callers,
                label,
                compiled.processes,
                _own_process(),
                _MOST_PROGRAM_BYTES,
                _device_count(compiled.executable),
            )
            if program < 0:
                self._fail("this build cannot read a compiled program: unknown form of HLO module")
            else:
                self._memory[program] = _memory_of(compiled.executable)
        self._on_program(str(getattr(compiled.backend, "platform", "")))
        return program

    def _on_duration(self, event: str, seconds: float, **keywords: Any) -> None:
        if event == _TRACE_EVENT:
            name = str(keywords.get("fun_name", ""))
            self._pending.trace_ns[name] = round(seconds * 1e9)
        elif event == _LOWER_EVENT:
            self._pending.lower_ns = round(seconds * 1e9)

    def _on_event(self, event: str, **_keywords: Any) -> None:
        if event == _HIT_EVENT:
            self._pending.is_hit = True
            self.cache_hits += 1
        elif event == _MISS_EVENT:
            self.cache_misses += 1

    def reasons(self) -> list[str]:
        """Say what is not known about the programs, and why."""
        counts = _native.jax_program_counts()
        hollow = counts["programs_without_operations"]
        if not hollow:
            return self.failures
        reason = (
            f"{hollow} of {counts['programs']} compiled programs have no operations in the "
            f"profile: the earlier programs reach the limit of {_MOST_PROGRAM_BYTES >> 20} MiB"
        )
        return [*self.failures, reason]

    def _fail(self, reason: str) -> None:
        if reason not in self.failures and len(self.failures) < _MOST_FRAMES:
            self.failures.append(reason)


def _stack(frame: FrameType | None) -> list[tuple[str, str, int]]:
    """Return (function, file, line) of the frames of the calling thread, outermost first."""
    frames = []
    while frame is not None:
        code = frame.f_code
        frames.append((code.co_qualname, code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return frames[::-1]


def _user_frames(stack: list[tuple[str, str, int]]) -> list[tuple[str, str, int]]:
    kept = [line for line in stack if not any(part in line[1] for part in _LIBRARY_PARTS)]
    return kept[-_MOST_FRAMES:]


def _processes(devices: Any) -> tuple[int, ...]:
    flat = getattr(devices, "flat", ())
    processes = tuple(int(getattr(device, "process_index", -1)) for device in flat)
    return processes if len(set(processes)) > 1 and min(processes) >= 0 else ()


def _own_process() -> int:
    state = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    return getattr(state, "process_id", None) or 0


def _device_count(executable: Any) -> int:
    """Return on how many devices of this process a program runs."""
    try:
        return len(executable.local_devices()) or 1
    except Exception:  # noqa: BLE001  not every backend has them
        return 1


def _live_executables(client: Any) -> list[Any]:
    try:
        return list(client.live_executables())
    except Exception:  # noqa: BLE001  not every backend has them
        return []


def _memory_of(executable: Any) -> dict[str, int]:
    """Return the bytes that one run needs, by the compiler's statistics; empty if it has none.

    Takes some 0.1 ms. Sizes in host memory, which some backends list separately, are added.
    """
    try:
        said = executable.get_compiled_memory_stats()
        return {
            f"{part}_bytes": int(getattr(said, f"{part}_size_in_bytes"))
            + int(getattr(said, f"host_{part}_size_in_bytes", 0))
            for part in _MEMORY_PARTS
        }
    except Exception:  # noqa: BLE001  not every backend says
        return {}


def _module_name(executable: Any) -> str:
    modules = executable.hlo_modules()
    return str(modules[0].name) if modules else ""


def _is_stale(program: int, call: JittedCall | None) -> bool:
    """Return whether the cached program's lines lie outside the function as it is defined now."""
    if call is None or not call.file:
        return False
    lines = _definition(call)
    payload = _native.jax_program(program) if program >= 0 else None
    if payload is None or lines is None:
        return False
    seen = {
        line
        for operation in payload["operations"]
        for function, file, line in operation["lines"]
        if file == call.file and function == call.qualified_name
    }
    return any(line not in lines for line in seen)


def _definition(call: JittedCall) -> range | None:
    for waiting in _native.jax_calls():
        function = waiting[0]
        code = functions.code_of(function)
        if code is not None and code.co_qualname == call.qualified_name:
            last = max((line for _, _, line in code.co_lines() if line), default=0)
            return range(code.co_firstlineno, last + 1)
    return None


def _compact(program: dict[str, Any]) -> dict[str, Any]:
    """Return the program with each source line stored once, in "lines", and indices elsewhere."""
    index: dict[tuple[str, str, int], int] = {}
    for operation in program["operations"]:
        operation["lines"] = [index.setdefault(tuple(x), len(index)) for x in operation["lines"]]
        for member in operation["members"]:
            source = tuple(member["source"])
            member["source"] = index.setdefault(source, len(index)) if source[1] else -1
    program["lines"] = [list(line) for line in index]
    return program
