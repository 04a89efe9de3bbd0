"""Record JAX programs, in this process or in one of their own, and ask for their tree."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Protocol

import pytest

import deepcontext
from deepcontext.profiler.format.frame import FrameKind, Phase
from tests.profiled import profiled

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from deepcontext.profiler.model.trust import CollectorReport

pytest.importorskip("jax", reason="jax is in the dependency group 'frameworks'")


class Recording:
    """A profile with questions that tests ask."""

    def __init__(self, profile: deepcontext.Profile) -> None:
        self.profile = profile
        self.section: dict[str, Any] = json.loads(profile.sections["jax"])

    @property
    def collector(self) -> CollectorReport:
        (report,) = [c for c in self.profile.trust.collectors if c.name == "jax"]
        return report

    def detail(self, name: str) -> int:
        return int(self.collector.details[name])

    def nodes(self, kind: FrameKind, name: str) -> list[int]:
        frames = self.profile.frames
        return [
            node
            for node in range(len(self.profile.tree))
            if (frame := frames[int(self.profile.tree.frame[node])]).kind == kind
            and frame.name == name
        ]

    def launches(self, function: str) -> int:
        """Exact number of launches of a jitted function."""
        return self._sum("program_launch_count", function, inclusive=False)

    def device_ns(self, function: str) -> int:
        return self._sum("device_time_ns", function, inclusive=True)

    def launches_by_path(self, function: str) -> dict[tuple[str, ...], int]:
        """Launches by the functions on the Python path, outermost first."""
        column = self.profile.exclusive("program_launch_count")
        found: Counter[tuple[str, ...]] = Counter()
        for node in self.nodes(FrameKind.OPERATOR, f"jit({function})"):
            path = self.profile.path(node)
            names = tuple(f.name.rpartition(".")[2] for f in path if "/test_" in f.file)
            found[names] += int(column[node])
        return {path: count for path, count in found.items() if count}

    def phases(self, function: str) -> set[Phase]:
        """Phases with device time below a jitted function."""
        own = self.profile.exclusive("device_time_ns")
        tree = self.profile.tree
        return {
            Phase(int(tree.phase[inner]))
            for node in self.nodes(FrameKind.OPERATOR, f"jit({function})")
            for inner in range(node, int(tree.subtree_end[node]))
            if own[inner]
        }

    def lines(self, function: str, file: str) -> set[str]:
        """Functions of `file` that have device time below a jitted function."""
        whole = self.profile.inclusive("device_time_ns")
        tree = self.profile.tree
        return {
            frame.name
            for node in self.nodes(FrameKind.OPERATOR, f"jit({function})")
            for inner in range(node, int(tree.subtree_end[node]))
            if whole[inner]
            and (frame := self.profile.frame(inner)).kind == FrameKind.PYTHON
            and frame.file == file
        }

    def program(self, module: str) -> dict[str, Any]:
        """The last program of that module name."""
        programs: list[dict[str, Any]] = self.section["programs"]
        return [program for program in programs if program["module"] == module][-1]

    def compilations(self, function: str) -> list[dict[str, Any]]:
        return [c for c in self.section["compilations"] if c["function"] == function]

    def _sum(self, metric: str, function: str, *, inclusive: bool) -> int:
        if metric not in self.profile.metrics:
            return 0
        column = self.profile.inclusive(metric) if inclusive else self.profile.exclusive(metric)
        nodes = self.nodes(FrameKind.OPERATOR, f"jit({function})")
        return sum(int(column[node]) for node in nodes)


class Record(Protocol):
    """Runs a function under a session."""

    def __call__(self, work: Callable[[], object], *, exact: bool = True) -> Recording: ...


@pytest.fixture
def record() -> Record:
    def run(work: Callable[[], object], *, exact: bool = True) -> Recording:
        deepcontext.start(jax_exact=exact, cpu_rate=0)
        try:
            work()
        finally:
            profile = deepcontext.stop()
        return Recording(profile)

    return run


class RunScript(Protocol):
    """Runs a script in a process of its own, under `deepcontext profile`."""

    def __call__(
        self, source: str, *options: str, environment: dict[str, str] | None = None
    ) -> Recording: ...


@pytest.fixture
def run_script(tmp_path: Path) -> RunScript:
    def run(source: str, *options: str, environment: dict[str, str] | None = None) -> Recording:
        variables = {"JAX_PLATFORMS": "cpu", **(environment or {})}
        return Recording(profiled(tmp_path, source, "-q", *options, environment=variables).profile)

    return run
