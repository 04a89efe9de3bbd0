"""Notices when the program starts a tool that CUPTI serves instead of the profiler, and when it stops it.

torch.profiler has a watch of its own (`torch_profiler`). What a tool's functions do and return stays
as it is. Invariant: no tool is imported, and after `uninstall` its module is as it was.
"""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from deepcontext import _native
from deepcontext.profiler.recording import operations
from deepcontext.profiler.recording.import_hook import ImportHook

if TYPE_CHECKING:
    from collections.abc import Callable

NOTHING: Final = 0
RECORDS: Final = 1
EVERYTHING: Final = 2


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that uses CUPTI inside the program.

    Attributes:
        name: for messages.
        module: that the program imports.
        owner: attribute of the module that has the functions: a class, or a module of C functions.
        begin: function that takes CUPTI.
        end: function that gives it back, for one session of the tool.
        end_all: the same for all sessions; "" where there is no such function.
        needs: RECORDS where the tool replaces CUPTI's buffers, EVERYTHING where it must subscribe.
    """

    name: str
    module: str
    owner: str
    begin: str
    end: str
    end_all: str
    needs: int


# Source: torch 2.13 (the first), pytorch/pytorch, torch/profiler/_cupti/monitor.py (the second);
# triton 3.9, triton/profiler/profile.py.
TOOLS: Final = (
    Tool(
        "PyTorch's CUPTI monitor",
        "torch.profiler._cupti_monitor",
        *("CuptiMonitor", "start", "stop", ""),
        RECORDS,
    ),
    Tool(
        "PyTorch's CUPTI monitor",
        "torch.profiler._cupti.monitor",
        *("CuptiMonitor", "start", "stop", ""),
        EVERYTHING,
    ),
    Tool(
        "Proton",
        "triton.profiler.profile",
        *("libproton", "start", "finalize", "finalize_all"),
        EVERYTHING,
    ),
)


class ToolWatch:
    """Tells when a tool is about to take CUPTI, and when it has given it back."""

    def __init__(self, tool: Tool, on_change: Callable[[Tool, bool], None]) -> None:
        """Remember the callback, which gets the tool and whether it runs."""
        self._tool = tool
        self._on_change = on_change
        self._owner: Any = None
        self._originals: dict[str, tuple[Any, Any]] = {}  # with what replaces them
        self._sessions: set[object] = set()  # of the tool
        self._hook = ImportHook(tool.module, self._attach, lambda _: None)

    def install(self) -> None:
        """Watch from now on, or from when the tool is loaded."""
        self._hook.install()

    def notice(self) -> None:
        """Watch now if the tool was loaded in a way that the hook did not see."""
        self._hook.notice()

    def uninstall(self) -> None:
        """Leave the tool as it was."""
        self._hook.cancel()
        for name, (original, watched) in self._originals.items():
            if vars(self._owner).get(name) is watched:
                setattr(self._owner, name, original)
        self._originals.clear()

    def _attach(self) -> None:
        tool = self._tool
        self._owner = getattr(sys.modules.get(tool.module), tool.owner, None)
        callbacks: dict[str, tuple[Any, Any]] = {
            tool.begin: (self._before_begin, self._after_begin),
            tool.end: (None, self._after_end),
        }
        if tool.end_all:
            callbacks[tool.end_all] = (None, self._after_all)
        for name, (before, after) in callbacks.items():
            original = getattr(self._owner, name, None)
            if original is not None:
                watched = _native.watched_call(original, before, after)
                self._originals[name] = original, watched
                setattr(self._owner, name, watched)

    def _before_begin(self, *arguments: object) -> None:
        if self._uses_cupti(arguments):
            self._tell(is_running=True)

    def _after_begin(self, _token: object, result: object, *arguments: object) -> None:
        if not self._uses_cupti(arguments):
            return
        session = arguments[0] if self._is_method() else result  # None where it raised
        if session is not None and getattr(session, "_started", True):
            self._sessions.add(session)
        elif not self._sessions:
            self._tell(is_running=False)

    def _after_end(
        self, _token: object, _result: object, session: object = None, *_others: object
    ) -> None:
        self._sessions.discard(session)
        if not self._sessions:
            self._tell(is_running=False)

    def _after_all(self, *_given: object) -> None:
        self._sessions.clear()
        self._tell(is_running=False)

    def _is_method(self) -> bool:
        return isinstance(self._owner, type)

    def _uses_cupti(self, arguments: tuple[object, ...]) -> bool:
        """Return whether a session needs CUPTI: Proton has other back ends, and names them."""
        return self._is_method() or "cupti" in arguments

    def _tell(self, *, is_running: bool) -> None:
        # An exception here would become one of the program.
        with contextlib.suppress(Exception):
            operations.run(lambda: self._on_change(self._tool, is_running))
