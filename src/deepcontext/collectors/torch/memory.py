"""Memory that PyTorch allocates, on the host and on devices, by the call path that allocated it.

The hooks are native (`native/torch/memory.cpp`); this file finds out whether they see the
allocations of the torch that the program imported, and tells the native side which living tensors
are parameters, gradients and optimizer state. Invariant: hooks that miss an allocation or its free
in a trial are removed again. Devices are watched without a trial, because a trial would start a
device that the program may not use.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from deepcontext import _native
from deepcontext.collectors.shared.import_outcome import lateness, not_started
from deepcontext.collectors.shared.internal_thread import run_in_internal_thread
from deepcontext.collectors.torch.holders import Holders
from deepcontext.errors import EnvironmentProblem
from deepcontext.profiler.format import memory_metrics
from deepcontext.profiler.format.status import Outcome, Status
from deepcontext.profiler.recording import clock
from deepcontext.profiler.recording.collector import Availability, PhaseRule
from deepcontext.profiler.recording.import_hook import ImportHook

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from deepcontext.profiler.format.metric import MetricDescriptor
    from deepcontext.profiler.recording.options import SessionOptions

SECTION: Final = "memory"
_FIGURES: Final = "all allocations"
_LAYOUT: Final = 1
_LONGEST_WAIT_S: Final = 0.2
_BETWEEN_LOOKS_S: Final = 0.002
_TRIAL_BYTES: Final = 4099  # a size that no other code requests by chance


class TorchMemory:
    """Tracks every allocation of PyTorch's allocators from the moment torch is loaded."""

    name = "memory"
    phase_rules: Sequence[PhaseRule] = ()
    metrics: Sequence[MetricDescriptor] = memory_metrics.METRICS

    def __init__(self) -> None:
        self._hook = ImportHook("torch", self._attach, self._refuse)
        self._is_on = False
        self._is_attached = False
        self._refusal = ""
        self._libraries: list[str] = []
        self._was_taken_over = False
        self._roles_failure = ""
        self._has_missed_gradients = False
        self._holders: Holders | None = None
        self._holders_failure = ""
        self._begun_s = 0.0

    def probe(self) -> Availability:
        """Say whether the memory of the torch loaded in this process can be tracked."""
        if "torch" not in sys.modules:
            return Availability(available=True, reason="starts when the program imports torch")
        reason = _native.torch_find_host_allocator()
        if reason:
            return Availability(available=False, reason=reason)
        return Availability(available=True)

    def start(self, options: SessionOptions) -> None:
        """Track allocations from the moment torch is loaded."""
        self._is_on = options.memory
        if self._is_on:
            self._begun_s = clock.monotonic_s()
            self._holders = Holders(_addresses) if options.holders else None
            _native.memory_start()
            self._hook.install()

    def notice_import(self) -> None:
        """Start if torch was loaded in a way that the hook did not see."""
        self._hook.notice()

    def _attach(self) -> None:
        """Put the hooks into a process that has just loaded torch."""
        self._is_attached = True
        try:
            _watch_host()
        except EnvironmentProblem as problem:
            self._refusal = str(problem)
        except Exception as error:  # noqa: BLE001  an odd torch is a reason, never a crash
            self._refusal = f"the trial failed: {type(error).__name__}: {error}"
        self._libraries = _native.torch_watch_devices()

    def _refuse(self, error: str) -> None:
        self._refusal = error

    def stop(self) -> None:
        """Remove the hooks, or stop waiting for torch."""
        self._hook.cancel()
        if self._is_on:
            self._look_for_holders(is_last=True)
            self._was_taken_over = not _native.torch_is_memory_watched()
            _native.memory_stop()

    def settle(self) -> None:
        """Tell the native side the roles of the living tensors."""
        if not self._is_attached:
            return
        try:
            # The program may be inside a torch function mode that would see these calls.
            with sys.modules["torch"]._C.DisableTorchFunction():  # noqa: SLF001
                _wait_for_backward()
                known = _known_tensors()
                for role, addresses in known.items():
                    _native.memory_set_role(addresses, role)
                self._has_missed_gradients = memory_metrics.GRADIENT not in known
        except Exception as error:  # noqa: BLE001  an odd object costs its role, never the profile
            self._roles_failure = f"{type(error).__name__}: {error}"
        self._look_for_holders()

    def _look_for_holders(self, *, is_last: bool = False) -> None:
        if self._holders is None or not self._is_attached:
            return
        try:
            with sys.modules["torch"]._C.DisableTorchFunction():  # noqa: SLF001  as above
                self._holders.look(clock.monotonic_s() - self._begun_s, is_last=is_last)
        except Exception as error:  # noqa: BLE001  an odd object costs the names, never the profile
            self._holders_failure = f"{type(error).__name__}: {error}"

    def outcome(self) -> Outcome:
        """Say what was tracked, and what could not be tracked."""
        if not self._is_on:
            return Outcome(Status.OFF, "switched off (--no-memory)")
        if not self._is_attached:
            return not_started(self._hook, _FIGURES)
        if self._refusal and not self._libraries:
            return Outcome(Status.UNAVAILABLE, self._refusal)
        summary = _native.memory_summary()
        watched = ", ".join(["libc10.so"] * (not self._refusal) + self._libraries)
        counters = {
            "allocations": sum(pool["allocations"] for pool in summary["pools"]),
            "allocations_untracked": summary["untracked"],
            "frees_missed": summary["frees_missed"],
        }
        reason = lateness(self._hook, _FIGURES)
        if self._refusal:
            reason = f"host memory: {self._refusal}"
        if self._was_taken_over:
            reason = "another tool replaced the profiler's hooks: calls may be missing"
        return Outcome(
            Status.DEGRADED if reason else Status.RAN,
            reason,
            {"watched": watched},
            counters,
            (*_notes(summary), *self._role_notes()),
        )

    def _role_notes(self) -> tuple[str, ...]:
        notes = []
        if self._roles_failure:
            notes.append(f"the roles of some tensors are not known: {self._roles_failure}")
        if self._holders_failure:
            notes.append(f"what holds tensors is not known: {self._holders_failure}")
        elif self._holders and not self._holders.is_complete:
            notes.append(
                "a search for objects that hold tensors ended at its time limit: objects may be "
                "missing, and may hold more tensors than reported"
            )
        if self._has_missed_gradients:
            notes.append(
                "gradients are not distinguished from other memory, because a backward pass was "
                "running at every check"
            )
        return tuple(notes)

    def sections(self) -> Mapping[str, bytes]:
        """Return peak, roles and growth of each memory."""
        if not self._is_attached or (self._refusal and not self._libraries):
            return {}
        summary = _native.memory_summary()
        content = {
            "version": _LAYOUT,
            "steps": summary["steps"],
            "step_kind": summary["step_kind"],
            "growth_since_step": summary["growth_since_step"],
            "untracked_bytes": summary["untracked_bytes"],
            "pools": [_pool(pool) for pool in summary["pools"]],
        }
        holders = self._holders.sections() if self._holders else {}
        return {SECTION: json.dumps(content).encode(), **holders}


def _pool(pool: _native.MemoryPool) -> dict[str, object]:
    by_role = zip(("unknown", *memory_metrics.ROLES), pool["peak_role_bytes"], strict=True)
    return {**pool, "peak_role_bytes": dict(by_role)}


def _notes(summary: _native.MemorySummary) -> tuple[str, ...]:
    if not summary["untracked"]:
        return ()
    note = (
        f"more allocations were alive at once than can be tracked: {summary['untracked']} of them "
        f"({summary['untracked_bytes']} bytes) are in alloc_bytes only; live and peak bytes are "
        "lower bounds"
    )
    return (note,)


def _watch_host() -> None:
    """Hook the host's allocator, and check in a trial that the hooks see its calls.

    Raises:
        EnvironmentProblem: with the reason why this torch's memory cannot be tracked.
    """
    reason = _native.torch_find_host_allocator() or run_in_internal_thread(_trial)
    if reason:
        version = getattr(sys.modules["torch"], "__version__", "unknown")
        raise EnvironmentProblem(f"torch {version}: {reason}")


def _trial() -> str:
    # A storage is what a tensor keeps its values in; making one runs no operator.
    storage: Any = sys.modules["torch"].UntypedStorage
    # The linker looks functions up at their first call, which would undo a hook.
    storage(_TRIAL_BYTES)
    address = 0
    _native.torch_begin_host_check()
    try:
        trial = storage(_TRIAL_BYTES)
        address = trial.data_ptr()
        del trial
    finally:
        reason = _native.torch_finish_host_check(address, _TRIAL_BYTES)
    return reason


def _known_tensors() -> dict[int, list[int]]:
    """Return the addresses of living parameters, gradients and optimizer states, by role.

    Gradients are left out while a backward pass runs, because reading them from PyTorch is unsafe
    then. Runs no operator and no code of the program: objects are found through the garbage
    collector and distinguished by their exact types.
    """
    torch: Any = sys.modules["torch"]
    parameter_type = torch.nn.Parameter
    found = _native.objects_of(parameter_type, *_subclasses(torch.optim.Optimizer))
    parameters = [each for each in found if type(each) is parameter_type]
    optimizers = [each for each in found if type(each) is not parameter_type]
    gradients = _gradient_addresses(parameters)
    states = [
        value
        for optimizer in optimizers
        for state in list(vars(optimizer).get("state", {}).values())
        if isinstance(state, dict)
        for value in list(state.values())
    ]
    return {
        memory_metrics.OPTIMIZER: list(_addresses(torch, states)),
        **({} if gradients is None else {memory_metrics.GRADIENT: gradients}),
        memory_metrics.PARAMETER: list(_addresses(torch, parameters)),
    }


def _gradient_addresses(parameters: list[Any]) -> list[int] | None:
    """Return the addresses of the parameters' gradients; None while a backward pass runs."""
    torch: Any = sys.modules["torch"]
    return _native.gradient_addresses(
        parameters,
        torch.Tensor,
        torch.strided,
        torch._C._is_cow_tensor,  # noqa: SLF001  asking for its address would copy it
        # Every backward pass runs inside one of these two.
        torch.autograd.backward.__code__,
        torch.autograd.grad.__code__,
    )


def _wait_for_backward() -> None:
    """Wait a short time for a moment between two backward passes."""
    end = clock.monotonic_s() + _LONGEST_WAIT_S
    while _gradient_addresses([]) is None and clock.monotonic_s() < end:
        time.sleep(_BETWEEN_LOOKS_S)


def _subclasses(kind: type) -> Iterator[type]:
    pending, seen = [kind], {kind}
    while pending:
        found = pending.pop()
        yield found
        subclasses: list[type] = type.__subclasses__(found)
        fresh = [each for each in subclasses if each not in seen]
        seen.update(fresh)
        pending += fresh


def _addresses(torch: Any, values: Iterable[Any]) -> Iterator[int]:
    """Yield the start of the memory of plain tensors; others may have no memory, or lazy memory."""
    plain = (torch.Tensor, torch.nn.Parameter)
    for value in values:
        if type(value) not in plain or value.layout is not torch.strided:
            continue
        try:
            if torch._C._is_cow_tensor(value):  # noqa: SLF001  asking for its address would copy it
                continue
            begin = value.data_ptr() - value.storage_offset() * value.element_size()
        except (AttributeError, RuntimeError):  # a fake, functional or meta tensor
            continue
        if begin:
            yield begin
