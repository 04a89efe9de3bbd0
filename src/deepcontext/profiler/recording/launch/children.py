"""Record the children of a profiled program that import a framework, and forks of such processes.

A child that is started as a new program (`subprocess`, spawn, a shell) runs
`children_path/sitecustomize.py`, which starts the session (`child_start.py`); a child that
`multiprocessing` forks starts a session when its `Process` starts. A plain `os.fork` stays unrecorded,
because a daemon or a server may never end, unless all children were asked for.
Invariant: if the profiler fails, the child runs and ends as it does without the profiler.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deepcontext.profiler.format import run_directory
from deepcontext.profiler.recording.launch.own_children import OwnChildren
from deepcontext.profiler.recording.launch.standard_error import StandardError
from deepcontext.profiler.recording.options import SessionOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from deepcontext.profiler.recording.collector import Collector
    from deepcontext.profiler.recording.session import Session

    CollectorMaker = Callable[[], Collector]

FRAMEWORKS: Final = ("torch", "jax")
# Per process; the trust report counts further children as not recorded.
MOST_FORKED_CHILDREN: Final = 64
# Neither a GPU driver nor JAX's threads survive a fork.
_NOT_IN_FORKED_CHILDREN: Final = frozenset({"nvidia", "amd", "jax"})


class ChildFollower:
    """Starts sessions in the children that `multiprocessing` forks from this process."""

    def __init__(self, note: Mapping[str, Any], collectors: Sequence[CollectorMaker]) -> None:
        """Remember what children need; see `child_start.begin_in_child`."""
        self._collectors = collectors
        self._run = Path(note["run"])
        self._options = SessionOptions.of(note["session"])
        self._records_all = note.get("children") == "all"
        self._forked = 0
        self._own: OwnChildren | None = None

    def install(self) -> None:
        """Watch the forks of this process from now on."""
        os.register_at_fork(after_in_parent=self._count, after_in_child=self._after_fork)

    def start_session(self, *, is_forked: bool) -> None:
        """Start the session of this process, unless one is running or too many children have one."""
        import deepcontext  # noqa: PLC0415

        manager = deepcontext._MANAGER  # noqa: SLF001  one package
        if manager.session is not None or not run_directory.claim(self._run):
            return
        makers = [
            make
            for make in self._collectors
            if not (is_forked and make().name in _NOT_IN_FORKED_CHILDREN)
        ]
        path = run_directory.profile_path(self._run)
        session = manager.start(path, self._options, makers, gives_way=True)
        self.expect_children(session)

    def expect_children(self, session: Session) -> None:
        """Let a session tell how its process's children ended, and which have no profile but should."""
        self._own = session.own_children = OwnChildren(self._run)
        session.recorded_children = MOST_FORKED_CHILDREN

    def _count(self) -> None:
        self._forked += 1
        if self._own is not None:
            self._own.note_fork(sys._getframe(1))  # noqa: SLF001

    def _after_fork(self) -> None:
        """Register a callback of `multiprocessing`, which never runs in a child that only calls exec."""
        forked, self._forked = self._forked, 0
        self._own = None
        if forked >= MOST_FORKED_CHILDREN:
            return
        util = sys.modules.get("multiprocessing.util")
        if self._records_all:
            # This child of `subprocess` only calls `preexec_fn` and then exec.
            if sys._getframe(1).f_code.co_name != "_execute_child":  # noqa: SLF001
                self._begin_in_forked_child()
        elif util is not None and any(name in sys.modules for name in FRAMEWORKS):
            util.register_after_fork(self, ChildFollower._begin_in_forked_child)

    def _begin_in_forked_child(self) -> None:
        # Garbage of the parent is collected where the program causes a collection, as it is without the
        # profiler: an inherited iterator of a DataLoader complains when a child deletes it. No other
        # thread runs yet.
        collects = gc.isenabled()
        gc.disable()
        try:
            self.start_session(is_forked=True)
        except Exception as error:  # noqa: BLE001  the child's work must not fail
            StandardError().say(
                f"process {os.getpid()} runs unprofiled: {type(error).__name__}: {error}"
            )
        finally:
            if collects:
                gc.enable()
