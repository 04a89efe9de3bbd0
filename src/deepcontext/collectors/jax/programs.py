"""JAX: jitted calls under their Python path, and what their programs do inside.

Combines the dispatch hook, the compile hook, the sampler and the transfer hooks; each works without
the others, and the outcome says what could not be recorded. Imports nothing from jax: everything
starts when the program has imported it.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepcontext import _native
from deepcontext.collectors.jax import buffers as jax_buffers
from deepcontext.collectors.jax import checks, collectives
from deepcontext.collectors.jax.compilation import CompileHook
from deepcontext.collectors.jax.dispatch import DispatchHook
from deepcontext.collectors.jax.names import Names, jax_version
from deepcontext.collectors.jax.ranges import DeviceRanges
from deepcontext.collectors.jax.sampling import OWN_TRACER, Sampler
from deepcontext.collectors.jax.transfers import TransferHooks
from deepcontext.collectors.jax.window_policy import DUTY
from deepcontext.collectors.shared.import_outcome import lateness, not_started
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import (
    DEVICE_TIME_NS,
    FLOPS,
    PROGRAM_LAUNCH_COUNT,
    Aggregation,
    MetricDescriptor,
)
from deepcontext.profiler.format.status import Outcome, Status
from deepcontext.profiler.recording.collector import Availability, PhaseRule
from deepcontext.profiler.recording.import_hook import ImportHook
from deepcontext.profiler.recording.options import SessionOptions
from deepcontext.profiler.recording.rank import Rank

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SECTION = "jax"
_SECTION_VERSION = 1
_FIGURES = "all jitted calls"
_JOINING = (("/jax/_src/distributed.py", ""), ("/jax/_src/xla_bridge.py", "_init_backend"))
_JOINING_MARKER = "jax: join the other processes"
# `jnp.array` and `jnp.asarray`: converting Python's numbers takes long, and only its time shows it.
_MAKING = "/jax/_src/numpy/array_constructors.py"
_MAKING_MARKER = "jax: make an array"

BYTES_MOVED = MetricDescriptor(
    "bytes_moved",
    "bytes",
    Aggregation.SUM,
    "bytes of operands and results, once each per execution of an operation",
)
TRANSFER_BYTES = MetricDescriptor(
    "transfer_bytes", "bytes", Aggregation.SUM, "bytes copied between host and device"
)
REPEATED_TRANSFER_BYTES = MetricDescriptor(
    "repeated_transfer_bytes",
    "bytes",
    Aggregation.SUM,
    "bytes of NumPy arrays that a call copied although an earlier call had copied the same ones",
)
READ_BYTES = MetricDescriptor(
    "read_bytes",
    "bytes",
    Aggregation.SUM,
    "bytes of arrays in host memory that NumPy read without a copy",
)


class JaxPrograms:
    """Observes every jitted call, compilation and, on the CPU, compiled operation."""

    name = "jax"
    phase_rules: Sequence[PhaseRule] = (
        PhaseRule(FrameKind.PHASE, "forward", "", Phase.FORWARD),
        PhaseRule(FrameKind.PHASE, "backward", "", Phase.BACKWARD),
        PhaseRule(FrameKind.PHASE, "recompute", "", Phase.RECOMPUTE),
    )
    metrics: Sequence[MetricDescriptor] = (
        DEVICE_TIME_NS,
        PROGRAM_LAUNCH_COUNT,
        FLOPS,
        BYTES_MOVED,
        TRANSFER_BYTES,
        REPEATED_TRANSFER_BYTES,
        READ_BYTES,
        *jax_buffers.METRICS,
    )

    def __init__(self) -> None:
        self._options = SessionOptions()
        self._hook = ImportHook("jax", self._attach, self._refuse)
        self._parts: _Parts | None = None
        self._written: Mapping[str, int] = {}
        self._times: Sequence[tuple[int, int, int, int]] = ()
        self._callbacks: Sequence[tuple[int, int, int, int]] = ()
        self._estimated: Sequence[tuple[int, int]] = ()
        self._failure = ""

    def probe(self) -> Availability:
        """Say which jax of this process would be observed."""
        if "jax" not in sys.modules:
            return Availability(available=True, reason="starts when the program imports jax")
        return Availability(available=True, reason=f"jax {jax_version()}")

    def start(self, options: SessionOptions) -> None:
        """Observe from the moment jax is loaded."""
        self._options = options
        _native.jax_clear()
        self._hook.install()

    def notice_import(self) -> None:
        """Start if jax was loaded in a way that the hook did not see."""
        self._hook.notice()

    def _attach(self) -> None:
        """Put the hooks into a process that has just loaded jax."""
        _hide_frames()
        self._parts = _Parts(self._options)
        self._parts.install()

    def _refuse(self, error: str) -> None:
        self._failure = f"jax {jax_version()} cannot be observed: {error}"

    def stop(self) -> None:
        """Remove all hooks from jax."""
        self._hook.cancel()
        if self._parts is not None:
            self._parts.uninstall()

    def rank(self) -> Rank | None:
        """Return the rank of this process in `jax.distributed`."""
        state = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
        number, of = getattr(state, "process_id", None), getattr(state, "num_processes", None)
        if not isinstance(number, int) or not isinstance(of, int) or of <= 1:
            return None
        return Rank(number, of, "jax.distributed")

    def on_step(self) -> None:
        """Look at the memory of arrays at the end of a step."""
        if self._parts is not None:
            self._parts.buffers.on_step()

    def settle(self) -> None:
        """Put the sampled times into the tree."""
        if self._parts is not None:
            self._parts.find_programs()
            self._parts.sampler.flush()
            self._parts.buffers.look_last()
            self._written, self._times, self._callbacks, self._estimated = _native.jax_write_tree()

    def outcome(self) -> Outcome:
        """Say what was observed, what was not, and why."""
        if self._failure:
            return Outcome(Status.UNAVAILABLE, self._failure, {"jax": jax_version()})
        if self._parts is None:
            return not_started(self._hook, _FIGURES)
        details: dict[str, str | int | float] = {
            "jax": jax_version(),
            **self._parts.details(),
            **self._written,
        }
        reasons = self._parts.reasons()
        unsampled = self._written.get("unsampled_launches", 0)
        if unsampled and not self._parts.ranges.has_times():
            reasons.append(
                f"{unsampled} launches belong to programs that never ran completely while sampled: "
                "counted, not timed"
            )
        by_parts = self._written.get("launches_by_parts", 0)
        if by_parts:
            reasons.append(
                f"{by_parts} launches belong to programs that never ran completely while sampled: "
                "their times are estimated from parts of runs"
            )
        untimed = int(details["untimed_operations"])
        if untimed:
            reasons.append(
                f"{untimed} operations belong to programs whose compilation was not seen, beyond the first "
                "1,000 such programs: counted, not timed"
            )
        missed = [
            each for each in (lateness(self._hook, _FIGURES), self._parts.dispatch.missed) if each
        ]
        reasons = [*missed, *reasons]
        status = Status.DEGRADED if reasons else Status.RAN
        return Outcome(status, "; ".join(reasons), details, notes=tuple(missed))

    def sections(self) -> Mapping[str, bytes]:
        """Return programs, compilations, sampling and times of single collectives as JSON."""
        if self._parts is None:
            return {}
        body = json.dumps({
            "version": _SECTION_VERSION,
            "jax": jax_version(),
            "degraded": self._parts.reasons(),
            "sampling": {**self._parts.details(), **self._written},
            "checks": checks.checks_on(),
            "buffers": asdict(self._parts.buffers.counts),
            "fed_back": _native.jax_fed_back(),  # function, launches looked at, number fed back
            "times": self._times,  # of program, operation: executions, device ns
            "callbacks": self._callbacks,  # the same of calls of Python, with the time of the host
            "estimated": self._estimated,  # program, operation of estimated executions
            **self._parts.compiling.payload(),
        }).encode()
        return {
            SECTION: body[:-1] + b', "programs": ' + self._parts.compiling.programs_json() + b"}",
            **collectives.sections(),
        }


class _Parts:
    """The hooks of one session."""

    def __init__(self, options: SessionOptions) -> None:
        self.names = Names()
        self.sampler = Sampler(self.names, exact=options.jax_exact)
        self.ranges = DeviceRanges()
        self.compiling = CompileHook(self.names, self._on_program)
        self.dispatch = DispatchHook(self.names)
        self.transfers = TransferHooks(self.names)
        self.buffers = jax_buffers.Buffers(self.names)
        self._follows_memory = options.memory
        self._mode = "exact" if options.jax_exact else f"sampled {DUTY:.0%}"

    def install(self) -> None:
        self.ranges.install()
        self.dispatch.install()
        self.sampler.install()
        self.compiling.install()
        if "compile" in self.names.missing:
            self.sampler.poll(self.compiling.add_existing)
        self.transfers.install()
        if self._follows_memory:
            self.buffers.install()

    def uninstall(self) -> None:
        self.buffers.uninstall()
        self.transfers.uninstall()
        self.compiling.uninstall()
        self.sampler.uninstall()
        self.dispatch.uninstall()
        self.ranges.uninstall()

    def _on_program(self, platform: str) -> None:
        self.ranges.on_program(platform)
        self.sampler.on_program(platform)

    def find_programs(self) -> None:
        """Ask the backend for programs if there is no hook, before times are joined with them."""
        if "compile" in self.names.missing and _native.is_recording():
            self.compiling.add_existing()

    def details(self) -> dict[str, Any]:
        state = self.sampler.state
        return {
            "dispatch": self.dispatch.way,
            "mode": self._mode,
            "sampled_s": round(state.open_s, 3),
            "paused_s": round(state.paused_s, 3),
            **_native.jax_window_counts(),
            **_native.jax_program_counts(),
            **self.ranges.details(),
        }

    def reasons(self) -> list[str]:
        """Say what is missing from the profile, and why."""
        reasons = list(self.names.missing.values())
        if self.dispatch.way != "vectorcall":
            reasons.append(f"calls of jitted functions are observed through: {self.dispatch.way}")
        # On a GPU, XLA's tracer is not used: the GPU's collector times what programs do.
        is_timed = self.ranges.has_times()
        reasons += [
            f"no time inside compiled programs: {why}"
            for why in self.sampler.state.refusals
            if not (is_timed and why.endswith(OWN_TRACER))
        ]
        if self.sampler.state.pauses:
            reasons.append(
                "sampling paused while the program used jax.profiler"
                + (", and is still paused" if self.sampler.is_paused else "")
            )
        if self.buffers.failure:
            reasons.append(f"the memory of arrays is not known: {self.buffers.failure}")
        return reasons + self.ranges.reasons() + self.compiling.reasons()


def _hide_frames() -> None:
    """Leave out jax's Python frames, because its operators belong to the line that calls them.

    Except where a process waits for the others of its job to begin, which is not what the line does, and
    where an array is made, because converting lists may take longer than all operators of the line.
    """
    for joining, function in _JOINING:
        _native.add_code_rule("suffix", joining, function, "folded", _JOINING_MARKER)
    _native.add_code_rule("suffix", _MAKING, "array", "folded", _MAKING_MARKER)
    for module in ("jax", "jaxlib"):
        file = getattr(sys.modules.get(module), "__file__", None)
        if file:
            _native.add_code_rule("prefix", f"{Path(file).parent}/", "", "hidden", "")
