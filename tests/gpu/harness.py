"""Programs on a real GPU, each in a process of its own, and questions to their profiles."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import stacks

import deepcontext
from deepcontext.collectors.gpu.libraries import has_amd_driver, has_nvidia_driver
from deepcontext.profiler.format.frame import FrameKind

if TYPE_CHECKING:
    from pathlib import Path

    from results import Results

TIMEOUT_S = 300
VENDOR = "amd" if has_amd_driver() and not has_nvidia_driver() else "nvidia"


@dataclass(frozen=True)
class Outcome:
    """What a program printed as its last line (JSON), and its profile, if it was profiled."""

    values: dict[str, Any]
    stderr: str
    profile: deepcontext.Profile | None = None

    @property
    def counters(self) -> dict[str, int]:
        assert self.profile is not None
        return dict(self.profile.trust.counters)

    @property
    def status(self) -> str:
        return str(self._report.status)

    @property
    def reason(self) -> str:
        return str(self._report.reason)

    @property
    def details(self) -> dict[str, str | int | float]:
        return dict(self._report.details)

    def figure(self, name: str) -> int:
        """A figure of the collector's details."""
        return int(self._report.details[name])

    def kernels(self) -> dict[tuple[str, ...], tuple[int, int]]:
        """Launches and ns of each kernel, copy and memset by its path of names."""
        assert self.profile is not None
        profile = self.profile
        if "launch_count" not in profile.metrics:
            return {}
        launches, times = profile.exclusive("launch_count"), profile.exclusive("gpu_time_ns")
        found: dict[tuple[str, ...], tuple[int, int]] = {}
        for node in profile.query().kind(FrameKind.KERNEL, FrameKind.COPY).nodes().tolist():
            path = tuple(profile.frame(at).name for at in profile.tree.path(node))
            old = found.get(path, (0, 0))
            found[path] = (old[0] + int(launches[node]), old[1] + int(times[node]))
        return found

    def under(self, function: str) -> dict[str, int]:
        """Launches below a Python function, by the name of what was launched."""
        found: dict[str, int] = {}
        for path, (count, _) in self.kernels().items():
            if any(name.rpartition(".")[2] == function for name in path):
                found[path[-1]] = found.get(path[-1], 0) + count
        return found

    def total(self, metric: str, *, below: str = "", leaf: str = "") -> int:
        """Sum of a metric's exclusive values, at frames below a function, by beginning of the name."""
        assert self.profile is not None
        profile, found = self.profile, 0
        rows = profile.metrics[metric]
        for node, value in zip(rows.node.tolist(), rows.total.tolist(), strict=True):
            names = [profile.frame(at).name for at in profile.tree.path(node)]
            is_below = not below or any(name.rpartition(".")[2] == below for name in names)
            if is_below and names[-1].startswith(leaf):
                found += int(value)
        return found

    def launches_below(self, kind: FrameKind) -> int:
        """Launches below a frame of this kind."""
        assert self.profile is not None
        profile = self.profile
        rows = profile.metrics["launch_count"]
        return sum(
            int(count)
            for node, count in zip(rows.node.tolist(), rows.total.tolist(), strict=True)
            if any(profile.frame(at).kind is kind for at in profile.tree.path(node))
        )

    @property
    def _report(self):  # type: ignore[no-untyped-def]  # noqa: ANN202
        assert self.profile is not None
        return next(each for each in self.profile.trust.collectors if each.name == VENDOR)


@dataclass
class Bench:
    """Runs programs in a folder, and remembers rows for the table."""

    folder: Path
    results: Results
    test: str = ""

    def run(
        self,
        source: str,
        *options: str,
        is_profiled: bool = True,
        environment: dict[str, str] | None = None,
        limit_s: float = TIMEOUT_S,
    ) -> Outcome:
        """Run a program; it may end with `report(name=value, ...)`.

        Of one that does not end, the stacks are kept beside the table.
        """
        script = self.folder / "program.py"
        profile = self.folder / "program.dcprof"
        profile.unlink(missing_ok=True)
        script.write_text(PREAMBLE + textwrap.dedent(source), encoding="utf-8")
        profiler = ["-m", "deepcontext", "profile", "-q", *options, "-o", str(profile)]
        process = subprocess.Popen(
            [sys.executable, *(profiler if is_profiled else []), str(script)],
            cwd=self.folder,  # other tools leave files there
            env={**os.environ, **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            stdout, stderr = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            stacks.end(
                process.pid, self.results.folder / "stacks" / f"{self.test or 'program'}.txt"
            )
            process.communicate()
            raise
        assert process.returncode == 0, stderr
        lines = [line for line in stdout.splitlines() if line.startswith("{")]
        values = json.loads(lines[-1]) if lines else {}
        outcome = Outcome(
            values, stderr, deepcontext.Profile.load(profile) if is_profiled else None
        )
        if is_profiled:
            self.row(f"{self.test}: account", _account(outcome), "")
        return outcome

    def row(self, check: str, figure: str, bound: str = "") -> None:
        """Write a line of the table, before what it shows is asserted."""
        self.results.row(check, figure, bound)


def _account(outcome: Outcome) -> str:
    """What became of a profiled program's GPU work."""
    counters = outcome.counters
    names = ("launches", "records_received", "records_unmatched", "records_dropped", "errors")
    figures = ", ".join(f"{name} {counters.get('gpu_' + name, 0)}" for name in names)
    return f"{outcome.status}; {figures}; {outcome.reason}".strip("; ")


PREAMBLE = """\
import json, time
def report(**values):
    print(json.dumps(values), flush=True)
"""


# Kernels of one session of the program's `work`, by name: how often, and ns.
SESSION_OF_KERNELS = """
import deepcontext
def session():
    deepcontext.start()
    work()
    profile = deepcontext.stop()
    launches, times = profile.exclusive("launch_count"), profile.exclusive("gpu_time_ns")
    found = {}
    for node in profile.query().kind("kernel").nodes().tolist():
        entry = found.setdefault(profile.frame(node).name, [0, 0])
        entry[0] += int(launches[node])
        entry[1] += int(times[node])
    return found
"""


def assert_all_attributed(outcome: Outcome, least: int) -> None:
    """Assert that every record arrived, and under a call path of the program."""
    counters = outcome.counters
    assert counters["gpu_records_received"] >= least
    assert counters["gpu_records_unmatched"] == 0
    assert counters["gpu_records_dropped"] == 0
    assert counters["gpu_errors"] == 0
    assert counters["gpu_records_matched"] == counters["gpu_records_received"]
    for path in outcome.kernels():
        # A device's backward runs in a thread of the engine's own, without Python frames: what has
        # no forward operator stands below that thread.
        assert "<module>" in path or "torch::autograd::AccumulateGrad" in path, path
