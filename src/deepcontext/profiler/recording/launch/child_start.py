"""Start recording in a child that was started as a new program.

A separate file, so that a profiled program does not import what only its children need.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from deepcontext.profiler.recording.launch import python_words
from deepcontext.profiler.recording.launch.children import ChildFollower
from deepcontext.profiler.recording.launch.chosen_ranks import is_chosen
from deepcontext.profiler.recording.launch.launchers import is_launcher
from deepcontext.profiler.recording.launch.shadowing import hide_shadowed
from deepcontext.profiler.recording.rank import current_rank

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from deepcontext.profiler.recording.collector import Collector

    CollectorMaker = Callable[[], Collector]


def begin_in_child(
    note: Mapping[str, Any], collectors: Sequence[CollectorMaker], known_modules: frozenset[str]
) -> None:
    """Start recording in a process that a profiled program started.

    Args:
        note: content of the run directory's `options.json`.
        collectors: makers of the collectors to start, in this order.
        known_modules: names that were in `sys.modules` before the profiler loaded anything.
    """
    words = sys.orig_argv[1:]
    if _is_never_recorded(words) or not is_chosen(note.get("ranks", ""), current_rank()):
        return
    try:
        follower = ChildFollower(note, collectors)
        follower.start_session(is_forked=False)
        follower.install()
    finally:
        hide_shadowed(_import_folder(words), known_modules)


def _is_never_recorded(words: Sequence[str]) -> bool:
    """Return whether the words after the interpreter start deepcontext or a launcher."""
    _, program = python_words.split(words)
    match program:
        case ["-m", "deepcontext", *_]:
            return True
        case [script, *_] if script.endswith("/deepcontext"):
            return True
    return is_launcher(words)


def _import_folder(words: Sequence[str]) -> str:
    """Return what is or will be first on `sys.path`."""
    if getattr(sys, "argv", None):  # the interpreter has set both
        return sys.path[0] if sys.path else ""
    _, program = python_words.split(words)
    if not program or program[0] in {"-m", "-c", "-"}:
        return os.getcwd()  # noqa: PTH109  pathlib's is a wrapper
    script = os.path.realpath(program[0])
    return script if os.path.isdir(script) else os.path.dirname(script)  # noqa: PTH112, PTH120
