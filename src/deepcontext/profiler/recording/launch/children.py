"""Record the children of a profiled program that import a framework, and forks of such processes.

A child that is started as a new program (`subprocess`, spawn, a shell) runs
`children_path/sitecustomize.py`, which starts the session (`child_start.py`). A child that
`multiprocessing` forks starts a session when its `Process` starts, or, if the parent had no
framework, at its first import of a framework. The child of a plain `os.fork` is recorded only with
`--children all`, because a daemon or a server may never end.
Invariant: if the profiler fails, the child runs and ends as it does without the profiler.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import _bootstrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deepcontext.profiler.format import run_directory
from deepcontext.profiler.recording.launch.own_children import OwnChildren
from deepcontext.profiler.recording.options import SessionOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from deepcontext.profiler.recording.collector import Collector
    from deepcontext.profiler.recording.session import Session

    CollectorMaker = Callable[[], Collector]

FRAMEWORKS: Final = ("torch", "jax")
# Per process; the trust report counts further children as not recorded.
MOST_FORKED_CHILDREN: Final = 64
# A GPU driver does not survive a fork. Neither do JAX's threads, if the parent has loaded JAX.
_NOT_AFTER_FORK: Final = frozenset({"nvidia", "amd"})


class ChildFollower:
    """Starts sessions in the children that `multiprocessing` forks from this process."""

    def __init__(self, note: Mapping[str, Any], collectors: Sequence[CollectorMaker]) -> None:
        """Remember what children need; see `child_start.begin_in_child`."""
        self._collectors = collectors
        self._run = Path(note["run"])
        self._options = SessionOptions.of(note["session"])
        self._records_all = note.get("children") == "all"
        self._program = note.get("program", 0)
        self._forked = 0
        self._own: OwnChildren | None = None

    @property
    def has_seen_child(self) -> bool:
        """Whether this process has or had a child."""
        return self._own is not None and self._own.has_seen_child

    def install(self) -> None:
        """Watch the forks of this process from now on."""
        os.register_at_fork(after_in_parent=self._count, after_in_child=self._after_fork)

    def start_session(self, *, is_forked: bool) -> None:
        """Start the session of this process, unless one is running or too many children have one."""
        import deepcontext  # noqa: PLC0415
        from deepcontext.profiler.recording.launch.ancestors import (  # noqa: PLC0415  only a child needs it
            Ancestors,
        )
        from deepcontext.profiler.recording.launch.child_file import ChildFile  # noqa: PLC0415

        manager = deepcontext._MANAGER  # noqa: SLF001  one package
        if manager.session is not None or not run_directory.claim(self._run):
            return
        makers = [
            make for make in self._collectors if not (is_forked and _is_lost_at_fork(make().name))
        ]
        file = ChildFile(self._run, is_forked=is_forked)
        session = manager.start(file, self._options, makers, gives_way=True)
        file.follow(session)
        session.parent_pid = Ancestors(self._run, self._program).nearest
        self.expect_children(session)

    def expect_children(self, session: Session) -> None:
        """Let a session report how its children ended, and which should have a profile but do not."""
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
        elif util is not None:
            util.register_after_fork(self, ChildFollower._begin_with_framework)

    def _begin_with_framework(self) -> None:
        if any(name in sys.modules for name in FRAMEWORKS):
            self._begin_in_forked_child()
        else:
            sys.meta_path.insert(0, _FrameworkWatch(self._begin_in_forked_child))

    def _begin_in_forked_child(self) -> None:
        # The profiler must not cause a garbage collection here: an inherited iterator of a
        # DataLoader prints an error when a child deletes it.
        collects = gc.isenabled()
        gc.disable()
        try:
            self.start_session(is_forked=True)
        except Exception as error:  # noqa: BLE001  the child's work must not fail
            run_directory.note_failure(self._run, f"{type(error).__name__}: {error}")
        finally:
            if collects:
                gc.enable()


class _FrameworkWatch:
    """A finder that calls back when its process first imports a framework, and finds nothing itself.

    `children_path/sitecustomize.py` has one of its own, because it must load nothing.
    """

    def __init__(self, begin: Callable[[], None]) -> None:
        self._begin = begin
        self._pid = os.getpid()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Call back if `name` is a framework, and let the other finders find the module."""
        if name not in FRAMEWORKS or path is not None or os.getpid() != self._pid:
            return None
        try:
            sys.meta_path.remove(self)
        except ValueError:
            return None  # another thread has called back
        self._begin()
        # Search again, because the running loop over the finders skips finders that were added.
        return _bootstrap._find_spec(name, path, target)  # type: ignore[attr-defined, no-any-return]  # noqa: SLF001


def _is_lost_at_fork(collector: str) -> bool:
    return collector in _NOT_AFTER_FORK or (collector == "jax" and "jax" in sys.modules)
