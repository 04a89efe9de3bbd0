"""Begin with CUPTI when the program first uses CUDA, not before.

CUPTI lists the devices and starts threads when it is first used: before the program's own `cuInit`,
`CUDA_VISIBLE_DEVICES` would no longer count, and a forked child that uses CUDA could hang. So CUDA's
driver is offered an injection library, which it calls inside `cuInit`. Where another tool has offered
one, CUPTI is started when a framework is loaded; where the driver calls none, when CUDA is found in
use. Invariant: neither the driver nor CUPTI is loaded here.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext import _native
from deepcontext.collectors.gpu.collection import Interface, deadline_s, settings
from deepcontext.collectors.gpu.libraries import CUPTI_VARIABLE, cuda_driver
from deepcontext.profiler.recording import operations

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext.collectors.gpu.collection import GpuCollection
    from deepcontext.profiler.recording.options import SessionOptions

_INJECTION: Final = "libdeepcontext_injection.so"
_WAITING, _REFUSED = 1, 3
_MISSED: Final = (
    "CUDA was started without calling the profiler's injection library, so GPU work from before the "
    "profiler noticed is missing"
)


class DriverStart:
    """Starts a collection in the program's first `cuInit`."""

    def __init__(self, collection: GpuCollection, begin: Callable[[], None]) -> None:
        """Remember what to start.

        Args:
            collection: gets what was started.
            begin: starts it from here, where the driver did not.
        """
        self.copies: list[str] = []  # of libcupti, when it was begun in `cuInit`
        self._collection = collection
        self._begin = begin
        self._interface: Interface | None = None  # what is begun with; None: nothing is waited for
        self._refusal = ""  # why there is no injection

    def wait(self, interface: Interface, options: SessionOptions) -> None:
        """Begin in `cuInit`."""
        self._interface = interface
        self._refusal = _native.gpu_arm(
            str(Path(_native.__file__).with_name(_INJECTION)),
            interface.profiler,
            interface.driver,
            *settings(interface, options),
            CUPTI_VARIABLE not in os.environ,
        )

    def on_framework(self, interface: Interface, options: SessionOptions) -> None:
        """Take the libcupti of a framework that was loaded; called by an operation."""
        if self._refusal:
            self._begin()
            return
        self.look()
        if self._interface is not None and _native.gpu_armed()[0] == _WAITING:
            self.wait(interface, options)
            self._queue_for_torch()

    def look(self) -> None:
        """Take over what was begun in `cuInit`; begin if it was called and nothing was."""
        operations.run(self._look)

    def _look(self) -> None:
        interface = self._interface
        if interface is None or self._collection.has_begun:
            return
        is_running = _native.gpu_is_driver_running(cuda_driver())
        state, reason = _native.gpu_armed()
        if state > _WAITING:
            profiler, self.copies = _native.gpu_armed_with()
            first = Interface("cupti", profiler, interface.driver, interface.warning)
            self._collection.adopt(first, reason if state == _REFUSED else "")
            self._collection.uses(_native.gpu_cupti())
        elif is_running:
            self._collection.note(_MISSED)
            self._begin()

    def cancel(self) -> None:
        """Begin no more."""
        if self._interface is not None:
            _native.gpu_disarm(deadline_s())
            self.look()
            self._interface = None

    def _queue_for_torch(self) -> None:
        """Let torch call back when it has initialised CUDA, in case the driver does not."""
        cuda = sys.modules.get("torch.cuda")
        calls = getattr(cuda, "_queued_calls", None)
        if isinstance(calls, list):
            calls.append((self._on_torch, []))

    def _on_torch(self) -> None:
        # An exception here would become one of the program.
        with contextlib.suppress(Exception):
            self.look()
