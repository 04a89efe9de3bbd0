"""Notices when the program uses torch.profiler on a GPU, because only one of the two can have CUPTI.

Watches the two functions of `torch.autograd.profiler` that lead to Kineto; what they do, and what
they return, stays as it is. Invariant: torch is not imported, and after `uninstall` its module is as
it was.
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any, Final

from deepcontext import _native
from deepcontext.profiler.recording import operations
from deepcontext.profiler.recording.import_hook import ImportHook

if TYPE_CHECKING:
    from collections.abc import Callable

_MODULE: Final = "torch.autograd.profiler"
_BEGIN, _END = "_prepare_profiler", "_disable_profiler"


class TorchProfilerWatch:
    """Tells when torch.profiler begins and stops to record device work."""

    def __init__(self, on_change: Callable[[bool], None]) -> None:
        """Remember the callback, which gets whether torch.profiler is about to record."""
        self._on_change = on_change
        self._originals: dict[str, tuple[Any, Any]] = {}  # with what replaces them
        self._is_told = False
        self._hook = ImportHook("torch", self._attach, lambda _: None)

    def install(self) -> None:
        """Watch from now on, or from when torch is loaded."""
        self._is_told = True  # whatever an earlier session left
        self._tell(is_running=False)
        self._hook.install()

    def notice(self) -> None:
        """Watch now if torch was loaded in a way that the hook did not see."""
        self._hook.notice()

    def uninstall(self) -> None:
        """Leave torch as it was."""
        self._hook.cancel()
        module = sys.modules.get(_MODULE)
        for name, (original, watched) in self._originals.items():
            if getattr(module, name, None) is watched:
                setattr(module, name, original)
        self._originals.clear()

    def _attach(self) -> None:
        module: Any = sys.modules.get(_MODULE)
        begin, end = getattr(module, _BEGIN, None), getattr(module, _END, None)
        if begin is None or end is None or self._originals:
            return

        self._originals = {
            _BEGIN: (begin, _native.watched_call(begin, self._before_begin)),
            _END: (end, _native.watched_call(end, None, self._after_end)),
        }
        for name, (_, watched) in self._originals.items():
            setattr(module, name, watched)
        if getattr(module, "_is_profiler_enabled", False):
            self._tell(is_running=True)

    def _before_begin(self, _config: object = None, activities: Any = (), *_others: object) -> None:
        if any(str(activity).endswith(".CUDA") for activity in activities):
            self._tell(is_running=True)

    def _after_end(self, *_given: object) -> None:
        self._tell(is_running=False)

    def _tell(self, *, is_running: bool) -> None:
        if is_running == self._is_told:
            return
        self._is_told = is_running
        # An exception here would become one of the program.
        with contextlib.suppress(Exception):
            operations.run(lambda: self._on_change(is_running))
