"""Run a piece of source under the native recorder, and read the tree as paths.

Needs no framework and no reader of profile files, so that these tests run on every CPython.
"""

from __future__ import annotations

import functools
import gc
import os
import subprocess
import sys
import textwrap
import threading
from array import array
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deepcontext import _native
from deepcontext.profiler.format.frame import FrameKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NODE_LIMIT = 1_000_000
_TIMEOUT_S = 120


@dataclass(frozen=True)
class Recorded:
    """What one session saw.

    Attributes:
        events: path of the Python frames and scopes that each event was counted under, outermost
            first; frames as "name:line", scopes as "[name]", modules as "<label>". What called the
            source is left out.
        counters: as `_native.counters` gives them.
        files: file of each frame that is in a path.
        threads: names of the threads that recorded.
    """

    events: Counter[tuple[str, ...]]
    counters: _native.Counters
    files: dict[str, str]
    threads: set[str]


def _column(code: str, column: bytes) -> list[int]:
    return array(code, column).tolist()


@contextmanager
def session(node_limit: int = NODE_LIMIT) -> Iterator[None]:
    """Record, with destroyed code objects watched, as the collector does."""
    _native.begin(node_limit)
    assert _native.watch_code() == ""
    try:
        yield
    finally:
        _native.end()
        _native.unwatch_code()


def read() -> Recorded:
    """Read the running or last session's tree."""
    reading = _native.read_tree(())
    frames = reading.frame_columns()
    nodes = reading.node_columns(b"")
    strings = frames["strings"]
    kinds = frames["kind"]
    names = [strings[i] for i in _column("I", frames["name"])]
    files = [strings[i] for i in _column("I", frames["file"])]
    lines = _column("I", frames["line"])
    parents = _column("i", nodes["parent"])
    frame_of = _column("I", nodes["frame"])
    timed, calls = (reading.metric_column("call_duration_ns", field) for field in ("node", "count"))
    counts = dict(zip(_column("I", timed), _column("Q", calls), strict=True))

    paths: list[tuple[str, ...]] = []
    events: Counter[tuple[str, ...]] = Counter()
    seen_files: dict[str, str] = {}
    threads: set[str] = set()
    for node, parent in enumerate(parents):  # a parent comes first
        frame = frame_of[node]
        path = paths[parent] if parent >= 0 else ()
        match FrameKind(kinds[frame]):
            case FrameKind.PYTHON:
                is_outside = files[frame] in {__file__, threading.__file__}
                label = f"{names[frame]}:{lines[frame]}"
                seen_files[label] = files[frame]
                path = () if is_outside else (*path, label)
            case FrameKind.SCOPE:
                path = (*path, f"[{names[frame]}]")
            case FrameKind.MODULE:
                path = (*path, f"<{names[frame]}>")
            case FrameKind.MARKER:
                events[path] += counts[node]
            case FrameKind.THREAD:
                threads.add(names[frame])
            case _:
                pass
        paths.append(path)
    return Recorded(events, _native.counters(), seen_files, threads)


def totals(metric: str) -> dict[tuple[str, ...], int]:
    """Return a metric's totals by path of Python frames, named as `read` names them."""
    reading = _native.read_tree(())
    frames = reading.frame_columns()
    nodes = reading.node_columns(b"")
    strings = frames["strings"]
    names, files = _column("I", frames["name"]), _column("I", frames["file"])
    lines, frame_of = _column("I", frames["line"]), _column("I", nodes["frame"])
    paths: list[tuple[str, ...]] = []
    for parent, frame in zip(_column("i", nodes["parent"]), frame_of, strict=True):
        path = paths[parent] if parent >= 0 else ()
        if FrameKind(frames["kind"][frame]) is FrameKind.PYTHON:
            is_outside = strings[files[frame]] in {__file__, threading.__file__}
            path = () if is_outside else (*path, f"{strings[names[frame]]}:{lines[frame]}")
        paths.append(path)
    node_of, totals_of = (reading.metric_column(metric, field) for field in ("node", "total"))
    found: Counter[tuple[str, ...]] = Counter()
    for node, total in zip(_column("I", node_of), _column("q", totals_of), strict=True):
        found[paths[node]] += total
    return dict(found)


def call_source(source: str, file: str = "source.py", **names: object) -> None:
    """Run a source text whose first line is line 1; `mark()` counts an event where it stands."""
    names["mark"] = functools.partial(_native.count_event, "mark")
    names["enter"] = _native.enter_scope
    names["leave"] = _native.leave_scope
    text = textwrap.dedent(source).lstrip("\n")
    exec(compile(text, file, "exec"), {"__name__": "source", **names})


@pytest.fixture
def record() -> Callable[..., Recorded]:
    """Run a source text in a session of its own."""

    def run(source: str, file: str = "source.py", **names: object) -> Recorded:
        gc.collect()
        with session():
            call_source(source, file, **names)
        return read()

    return run


@pytest.fixture
def in_subprocess(tmp_path: Path) -> Callable[[str], str]:
    """Run a program in a process of its own and give its output; a status but 0 fails."""

    def run(program: str) -> str:
        path = tmp_path / "program.py"
        path.write_text(textwrap.dedent(program), encoding="utf-8")
        environment = dict(os.environ)
        package = Path(_native.__file__ or "").parent.parent
        environment["PYTHONPATH"] = os.pathsep.join((str(package), str(Path(__file__).parent)))
        done = subprocess.run(
            (sys.executable, "-X", "faulthandler", path),
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            env=environment,
            cwd=tmp_path,
            check=False,
        )
        assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run
