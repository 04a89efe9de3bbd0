"""PyTorch operators, forward and backward, with scopes, optimizer and data loading.

The observer is native (`native/torch/observer.cpp`); this file finds out whether the observer fits
the torch that the program imported, and starts it after the import. Invariant: an observer whose
layout was not verified is never started.
"""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Any

from deepcontext import _native
from deepcontext.collectors.shared.import_outcome import lateness, not_started
from deepcontext.collectors.shared.internal_thread import run_in_internal_thread
from deepcontext.collectors.torch import machine_peaks, torch_settings
from deepcontext.collectors.torch.collectives import Collectives
from deepcontext.collectors.torch.modules import ModuleNames
from deepcontext.collectors.torch.tensor_keys import find_tensor_keys
from deepcontext.profiler.format import peaks
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import (
    BUILT_GRAPH,
    COMPARISON_WINDOW,
    GC_TIME_NS,
    IGNORED_TARGETS,
    INDICES,
    INPUT_TYPES,
    LOSS_TARGETS,
    PADDING,
    REPEATED_INPUTS,
    SHARED_PADDING,
    Aggregation,
    MetricDescriptor,
)
from deepcontext.profiler.format.status import Outcome, Status
from deepcontext.profiler.recording.collector import Availability, PhaseRule
from deepcontext.profiler.recording.import_hook import ImportHook
from deepcontext.profiler.recording.options import SessionOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepcontext.profiler.recording.rank import Rank

_SCOPE_PLUMBING = (
    ("torch/autograd/profiler.py", "record_function.__enter__"),
    ("torch/_ops.py", ""),
    ("torch/jit/_script.py", ""),
)
_HIDDEN = (
    ("torch/nn/modules/module.py", "Module._call_impl"),
    ("torch/nn/modules/module.py", "Module._call_impl.<locals>.inner"),
    ("torch/_compile.py", "_disable_dynamo.<locals>.inner"),
    ("torch/_dynamo/eval_frame.py", "DisableContext.__call__.<locals>._fn"),
    # The whole file: newer versions give a decorator's frame the name of its context manager.
    ("torch/utils/_contextlib.py", ""),
    ("torch/autograd/graph.py", "_engine_run_backward"),
    ("torch/optim/optimizer.py", "Optimizer.profile_hook_step.<locals>.wrapper"),
    ("torch/optim/optimizer.py", "_use_grad_for_differentiable.<locals>._use_grad"),
)
# Compiling runs tens of thousands of distinct Python paths once; they are folded into one frame.
_COMPILING = (
    ("torch/_dynamo/convert_frame.py", ""),
    ("torch/_inductor/compile_fx.py", "compile_fx"),
    ("torch/_inductor/compile_fx.py", "compile_fx_inner"),
    ("torch/_inductor/compile_fx.py", "_compile_fx_inner"),
)
_COMPILING_MARKER = "torch.compile: compiling"
# Functions of the dispatcher between an operator's entry and its kernel; their names are mostly
# template arguments.
_NATIVE_PLUMBING = (
    "c10::BoxedKernel",
    "c10::Dispatcher::",
    "c10::KernelFunction::",
    "c10::impl::BoxedKernelWrapper<",
    "c10::impl::make_boxed_from_unboxed_functor<",
    "c10::impl::wrap_kernel_functor_unboxed_<",
    "torch::autograd::TypeError_to_NotImplemented_<",
)
# The native observer knows it by this name (`native/torch/observer.cpp`).
COMMUNICATION_BYTES = MetricDescriptor(
    "communication_bytes",
    "bytes",
    Aggregation.SUM,
    "bytes that process groups of NCCL or RCCL exchanged, of the larger side",
)
_FIGURES = "all operators"
_ENOUGH_THREADS = 4
_CALIBRATION_CALLS = 6


class TorchOperators:
    """Observes every operator that PyTorch runs, on every thread."""

    name = "torch"
    phase_rules: Sequence[PhaseRule] = (
        PhaseRule(FrameKind.SCOPE, "Optimizer.step#*", "", Phase.OPTIMIZER),
        PhaseRule(FrameKind.SCOPE, "Optimizer.zero_grad#*", "", Phase.OPTIMIZER),
        PhaseRule(FrameKind.SCOPE, "enumerate(DataLoader)#*", "", Phase.DATA_LOADING),
        PhaseRule(FrameKind.PYTHON, "backward", "torch/autograd/__init__.py", Phase.BACKWARD),
        PhaseRule(FrameKind.PYTHON, "grad", "torch/autograd/__init__.py", Phase.BACKWARD),
        PhaseRule(
            FrameKind.PYTHON,
            "_checkpoint_without_reentrant_generator.<locals>.recompute_fn",
            "torch/utils/checkpoint.py",
            Phase.RECOMPUTE,
        ),
        PhaseRule(
            FrameKind.PYTHON,
            "_checkpoint_without_reentrant_generator_impl.<locals>.recompute_fn",
            "torch/utils/checkpoint.py",
            Phase.RECOMPUTE,
        ),
        PhaseRule(
            FrameKind.PYTHON,
            "CheckpointFunction.backward",
            "torch/utils/checkpoint.py",
            Phase.RECOMPUTE,
        ),
        PhaseRule(FrameKind.MARKER, _COMPILING_MARKER, "", Phase.OTHER),
    )

    metrics: Sequence[MetricDescriptor] = (
        COMMUNICATION_BYTES,
        BUILT_GRAPH,
        GC_TIME_NS,
        *INPUT_TYPES,
        LOSS_TARGETS,
        IGNORED_TARGETS,
        INDICES,
        PADDING,
        SHARED_PADDING,
        COMPARISON_WINDOW,
        REPEATED_INPUTS,
    )

    def __init__(self) -> None:
        self._options = SessionOptions()
        self._hook = ImportHook("torch", self._attach, self._refuse)
        self._modules = ModuleNames()
        self._collectives = Collectives()
        self._version = ""
        self._refusal = ""
        self._shapes_refusal = ""

    def probe(self) -> Availability:
        """Say whether the torch loaded in this process can be observed."""
        if "torch" not in sys.modules:
            return Availability(available=True, reason="starts when the program imports torch")
        if reason := _unverified():
            return Availability(available=False, reason=reason)
        return Availability(available=True, reason=f"torch {_version()}")

    def start(self, options: SessionOptions) -> None:
        """Observe from the moment torch is loaded."""
        self._options = options
        self._hook.install()

    def notice_import(self) -> None:
        """Start if torch was loaded in a way that the hook did not see."""
        self._hook.notice()

    def _attach(self) -> None:
        """Start the observer in a process that has just loaded torch."""
        # A forked child has its parent's observer, which would record the calibration.
        _native.torch_stop()
        self._version = _version()
        self._collectives.start()
        self._refusal = _unverified()
        if self._refusal:
            return
        for file, qualified_name in _SCOPE_PLUMBING:
            _native.add_code_rule("suffix", file, qualified_name, "scope_plumbing", "")
        for file, qualified_name in _HIDDEN:
            _native.add_code_rule("suffix", file, qualified_name, "hidden", "")
        for file, qualified_name in _COMPILING:
            _native.add_code_rule("suffix", file, qualified_name, "folded", _COMPILING_MARKER)
        for beginning in _NATIVE_PLUMBING:
            _native.native_add_plumbing(beginning)
        self._modules.start()
        can_read = _native.torch_has_shapes()
        unknown = find_tensor_keys() if can_read else ""
        has_shapes = self._options.shapes and can_read and not unknown
        if self._options.shapes and not can_read:
            self._shapes_refusal = (
                f"torch {self._version} prints errors when shapes are requested, so operators are "
                "recorded without shapes; torch 2.13 prints no errors"
            )
        elif self._options.shapes and unknown:
            self._shapes_refusal = f"operators are recorded without shapes: {unknown}"
        # A program sees this list, so it stays as it is where there is no torch.
        gc.callbacks.append(_native.note_gc)
        _native.torch_start(has_shapes, can_read and not has_shapes)
        self._collectives.begin()

    def _refuse(self, error: str) -> None:
        self._refusal = f"torch {self._version} cannot be observed: {error}"

    def stop(self) -> None:
        """Remove the observer, or stop waiting for torch."""
        self._hook.cancel()
        self._collectives.stop()
        if _native.note_gc in gc.callbacks:  # the program may have cleared the list
            gc.callbacks.remove(_native.note_gc)
        _native.torch_stop()
        self._modules.stop()

    def rank(self) -> Rank | None:
        """Return the rank of this process in `torch.distributed`."""
        return self._collectives.rank()

    def settle(self) -> None:
        """Name the modules seen so far."""
        self._modules.settle()

    def outcome(self) -> Outcome:
        """Say what was observed, or why nothing was."""
        if self._refusal:
            return Outcome(Status.UNAVAILABLE, self._refusal, {"torch": self._version})
        if not self._version:
            return not_started(self._hook, _FIGURES)
        details: dict[str, str | int | float] = {"torch": self._version}
        late = lateness(self._hook, _FIGURES)
        reasons = [reason for reason in (late, self._shapes_refusal) if reason]
        status = Status.DEGRADED if reasons else Status.RAN
        return Outcome(status, "; ".join(reasons), details, notes=(late,) if late else ())

    def sections(self) -> Mapping[str, bytes]:
        """Return the times of single collectives, if any ended; with shapes, the machine's peaks."""
        if not self._version or self._refusal:
            return {}
        found = dict(self._collectives.sections())
        found[torch_settings.SECTION] = torch_settings.section()
        if self._options.shapes:
            found[peaks.SECTION] = machine_peaks.section()
        return found


def _version() -> str:
    return str(getattr(sys.modules.get("torch"), "__version__", "unknown"))


def _unverified() -> str:
    """Verify the field offsets of the loaded torch; return "" or why this torch cannot be observed."""
    reason = _native.torch_load()
    if not reason:
        for _ in range(_ENOUGH_THREADS):
            reason = _calibrate_in_new_thread()
            if not reason:
                return ""
    return f"torch {_version()} cannot be observed: {reason}"


def _calibrate_in_new_thread() -> str:
    """Calibrate where no other operator runs and torch's thread number is a rare value.

    On a new thread, so that the program's sequence numbers stay as they are.
    """
    try:
        return run_in_internal_thread(_calibrate)
    except Exception as error:  # noqa: BLE001  an odd torch is a reason, never a crash
        return f"calibration failed: {type(error).__name__}: {error}"


def _calibrate() -> str:
    torch: Any = sys.modules["torch"]
    tensor = torch.ones(3, requires_grad=True, dtype=torch.float32, device="cpu")
    other = torch.ones(3, dtype=torch.float32, device="cpu")
    for _ in range(37):  # to a sequence number that no other field holds by chance
        tensor.neg()
    reason = _native.torch_begin_calibration()
    if reason:
        return reason
    try:
        for between in range(_CALIBRATION_CALLS):
            tensor.mul(other)
            for _ in range(between):
                tensor.neg()
    finally:
        reason = _native.torch_finish_calibration()
    return reason
