"""Python call paths at operator and scope boundaries.

The frame walk is native and runs without the GIL (`native/python/frame_walk.h`); this file checks
that the walk reads this interpreter correctly, and says which frames the tree leaves out.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from deepcontext import _native
from deepcontext.errors import EnvironmentProblem
from deepcontext.profiler.format.status import Outcome, Status
from deepcontext.profiler.recording.collector import Availability

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from types import CodeType

    from deepcontext.profiler.format.metric import MetricDescriptor
    from deepcontext.profiler.recording.collector import PhaseRule
    from deepcontext.profiler.recording.options import SessionOptions

_PACKAGE = str(Path(__file__).parents[2])  # as in co_filename: symbolic links not resolved
# In which the program waits for the start of the session, or of the collectors of a framework that it
# has imported.
_STARTING = (
    ("import_hook.py", "ImportHook._call_back"),
    ("launch/bootstrap.py", "begin"),
    ("session_manager.py", "SessionManager.start"),
)
_STARTING_MARKER = "deepcontext: start"
# What children of a run import first, see `run_directory.py`.


class PythonFrames:
    """Puts operators and scopes under the Python lines that ran them."""

    name = "python"
    phase_rules: Sequence[PhaseRule] = ()
    metrics: Sequence[MetricDescriptor] = ()

    def __init__(self) -> None:
        self._degraded = ""

    def probe(self) -> Availability:
        """Compare native frame walks with `sys._getframe()`."""
        difference = _walk_difference() or next(_walk_difference_in_generator())
        if difference:
            return Availability(
                available=False,
                reason=f"this build does not know the layout of interpreter frames in Python "
                f"{sys.version.split()[0]}: {difference}",
            )
        return Availability(available=True)

    def start(self, options: SessionOptions) -> None:
        """Hide frames that are not the program's, and watch for code objects that are freed.

        Raises:
            EnvironmentProblem: when the walk does not fit this interpreter.
        """
        del options
        availability = self.probe()
        if not availability.available:
            raise EnvironmentProblem(availability.reason)
        for file, function in _STARTING:
            path = f"{_PACKAGE}/profiler/recording/{file}"
            _native.add_code_rule("exact", path, function, "folded", _STARTING_MARKER)
        _native.add_code_rule("prefix", _PACKAGE, "", "scope_plumbing", "")
        _native.add_code_rule("suffix", "/contextlib.py", "", "scope_plumbing", "")
        _native.add_code_rule("prefix", "<frozen importlib", "", "hidden", "")
        _native.add_code_rule("exact", "<frozen runpy>", "", "hidden", "")
        # CPython 3.13 and later put a frame of their own between a call of a class that is made often and
        # its __init__ (Objects/codeobject.c, _Py_MakeShimCode: name and file are "__init__").
        _native.add_code_rule("exact", "__init__", "", "hidden", "")
        self._degraded = _native.watch_code()

    def stop(self) -> None:
        """Stop watching code objects."""
        _native.unwatch_code()

    def settle(self) -> None:
        """Nothing arrives late."""

    def outcome(self) -> Outcome:
        """Say whether labels may be wrong after code objects were freed."""
        if self._degraded:
            return Outcome(
                Status.DEGRADED, f"{self._degraded}: a freed function may mislabel frames"
            )
        return Outcome(Status.RAN, "", {"python": sys.version.split()[0]})

    def sections(self) -> Mapping[str, bytes]:
        """Nothing beside the tree."""
        return {}


def _expected_walk() -> list[tuple[CodeType, int]]:
    frames = []
    frame = sys._getframe(1)  # noqa: SLF001  the reference for the comparison
    while frame is not None:
        frames.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back  # type: ignore[assignment]
    return frames


def _walk_difference() -> str:
    """Return "" when both walks agree, or the first place where they do not.

    The two calls are different instructions of this frame, so the offset in this frame is left out.
    """
    seen, expected = _native.walk_current_frames(), _expected_walk()
    if len(seen) != len(expected):
        return f"expected {len(expected)} frames, found {len(seen)}"
    for depth, (found, wanted) in enumerate(zip(seen, expected, strict=True)):
        if found[0] is not wanted[0]:
            return f"expected {wanted[0]!r} as frame {depth}, found {found[0]!r}"
        if depth > 0 and found[1] != wanted[1]:
            return f"expected frame {depth} at byte {wanted[1]}, found it at byte {found[1]}"
    return ""


def _walk_difference_in_generator() -> Generator[str]:
    yield _walk_difference()
