"""Record a workload in this process or a script in its own, and look at the tree as text.

The text form of a frame is what tests compare with: the source line for frames of the test's own
file, the bare function for frames of libraries, whose lines move with their version.
"""

from __future__ import annotations

import linecache
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

import deepcontext
from deepcontext.profiler.format.frame import Frame, FrameKind, Phase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_SCRIPT_TIMEOUT_S = 240.0


class Recording:
    """A profile with questions that tests ask.

    Args:
        profile: what was recorded.
        source: file whose frames are shown with the text of their line.
    """

    def __init__(self, profile: deepcontext.Profile, source: str) -> None:
        self.profile = profile
        self._source = source
        rows = profile.metrics.get("call_duration_ns")
        self._count = (
            dict(zip(rows.node.tolist(), rows.count.tolist(), strict=True)) if rows else {}
        )
        self._frames = [profile.frame(node) for node in range(len(profile.tree))]

    @property
    def counters(self) -> dict[str, int]:
        """Counters of the trust report."""
        return dict(self.profile.trust.counters)

    def frame(self, node: int) -> Frame:
        return self._frames[node]

    def count(self, node: int) -> int:
        """Calls of the operator or scope."""
        return self._count.get(node, 0)

    def phase(self, node: int) -> Phase:
        return Phase(int(self.profile.tree.phase[node]))

    def nodes(
        self, kind: FrameKind | None = None, name: str | None = None, phase: Phase | None = None
    ) -> list[int]:
        """Nodes of a kind, an exact name, a phase; None for any."""
        return [
            node
            for node, frame in enumerate(self._frames)
            if (kind is None or frame.kind == kind)
            and (name is None or frame.name == name)
            and (phase is None or self.phase(node) == phase)
        ]

    def operators(self, name: str | None = None, phase: Phase | None = None) -> list[int]:
        return self.nodes(FrameKind.OPERATOR, name, phase)

    def only(self, kind: FrameKind, name: str) -> int:
        """The one node of that kind and name."""
        (node,) = self.nodes(kind, name)
        return node

    def calls(self, name: str) -> int:
        """Calls of an operator or scope, wherever it ran."""
        return sum(self.count(node) for node in self.nodes(name=name))

    def ancestors(self, node: int) -> tuple[int, ...]:
        """Ids from the root down to the node's parent."""
        path: tuple[int, ...] = self.profile.tree.path(node)
        return path[:-1]

    def text(self, node: int) -> str:
        """The frame as tests write it."""
        frame = self._frames[node]
        short = frame.name.rpartition("<locals>.")[2]
        match frame.kind:
            case FrameKind.PYTHON if frame.file == self._source:
                return f"{short}: {linecache.getline(frame.file, frame.line).strip()}"
            case FrameKind.PYTHON:
                return short
            case FrameKind.SCOPE:
                return f"<{frame.name}>"
            case _:
                return frame.name

    def path(self, node: int) -> list[str]:
        """The call path as text, from the workload (or the thread) down to the node."""
        ids = (*self.ancestors(node), node)
        start = next((i + 1 for i, at in enumerate(ids) if self._is_harness(at)), 1)
        return [self.text(at) for at in ids[start:]]

    def paths(self, name: str) -> list[list[str]]:
        """Call paths of all nodes with that frame name."""
        return [self.path(node) for node in self.nodes(name=name)]

    def outline(self) -> str:
        """All that the workload did, one frame a line, with calls and changes of phase."""
        harness = [node for node in range(len(self._frames)) if self._is_harness(node)]
        return "".join(self._outline(node) for node in harness)

    def _outline(self, top: int) -> str:
        tree = self.profile.tree
        lines = []
        for node in range(top + 1, int(tree.subtree_end[top])):
            count = self.count(node)
            calls = f" x{count}" if count > 1 else ""
            phase = self.phase(node)
            is_new = phase != self.phase(int(tree.parent[node]))
            mark = f"  ({phase.label})" if is_new else ""
            indent = "  " * int(tree.depth[node] - tree.depth[top] - 1)
            lines.append(f"{indent}{self.text(node)}{calls}{mark}\n")
        return "".join(lines)

    def _is_harness(self, node: int) -> bool:
        frame = self._frames[node]
        return frame.file == __file__ and frame.name == _call.__qualname__


def _call(workload: Callable[..., Any], *arguments: Any) -> Any:
    return workload(*arguments)


@dataclass(frozen=True)
class Record:
    """Run a workload with a session around it."""

    source: str

    def __call__(self, workload: Callable[..., Any], *arguments: Any, **options: Any) -> Recording:
        """Args: as for calling `workload`; `options` are those of `deepcontext.start`.

        Nothing is sampled by default: these tests know every node of the tree.
        """
        deepcontext.start(**{"cpu_rate": 0, **options})
        try:
            _call(workload, *arguments)
        finally:
            profile = deepcontext.stop()
        return Recording(profile, self.source)


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Iterator[Record]:
    """Record a function of the test's file in this process."""
    yield Record(str(request.path))
    assert not deepcontext._native.is_recording()


# What torch prints by itself where Triton is not installed, and a build for CUDA where no GPU is.
_SAID_BY_TORCH = ("triton not found", "No CUDA runtime is found")


@dataclass(frozen=True)
class Script:
    """A program of its own, written by the test."""

    folder: Path

    @property
    def path(self) -> Path:
        return self.folder / "program.py"

    def run(self, source: str, *arguments: str, **environment: str) -> str:
        """Run the program; assert status 0 and a silent standard error; return what it printed."""
        import os

        self.path.write_text(textwrap.dedent(source), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, str(self.path), *arguments],
            cwd=self.folder,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=_SCRIPT_TIMEOUT_S,
        )
        assert done.returncode == 0, done.stderr
        said = done.stderr.splitlines()
        assert not [line for line in said if not any(part in line for part in _SAID_BY_TORCH)]
        return done.stdout

    def recording(self, name: str = "out.dcprof") -> Recording:
        """What the program wrote to a profile file in its folder."""
        return Recording(deepcontext.Profile.load(self.folder / name), str(self.path))


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Run a program in a process of its own."""
    return Script(tmp_path)
