"""What a profiler costs a workload: one fork for each measurement, ways to run it in turn.

Knows no test. A way that cannot run is a line with its reason, because other tools have their own faults.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PROGRAM: Final = Path(__file__).resolve().parent / "overhead_program.py"
TORCH_WAYS: Final = (
    "plain",
    "deepcontext",
    "torch.profiler",
    "torch.profiler with_stack",
    "Proton",
)
JAX_WAYS: Final = ("plain", "deepcontext", "jax.profiler")
_TOOLS: Final = {
    "deepcontext": "deepcontext",
    "torch.profiler": "torch",
    "torch.profiler with_stack": "torch-stack",
    "Proton": "proton",
    "jax.profiler": "jax",
}
_MOST_ROUNDS: Final = 5


@dataclass(frozen=True, slots=True)
class Measurement:
    """One run of a workload.

    Attributes:
        step_ms: median of the blocks.
        stop_s: from the end of the work to the end of the process.
        host_bytes: peak of the process.
        device_bytes: in use on the device at the end of the work.
        file_bytes: what the tool wrote.
        failure: why there is no measurement, "" otherwise.
    """

    step_ms: float = 0.0
    stop_s: float = 0.0
    host_bytes: int = 0
    device_bytes: int = 0
    file_bytes: int = 0
    failure: str = ""


class Server:
    """A process with a framework's imports, whose forks measure."""

    def __init__(self, framework: str) -> None:
        """Start it; the first measurement waits for the imports."""
        command = [sys.executable, str(PROGRAM), "serve", framework]
        self._process = subprocess.Popen(
            command,
            cwd=PROGRAM.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def measure(self, workload: str, way: str, device: str, steps: int) -> Measurement:
        """Run a workload once, in a fork."""
        folder = Path(tempfile.mkdtemp(prefix="overhead"))
        written = folder / "written"
        written.mkdir()
        try:
            words = [workload, _TOOLS.get(way, "none"), device, str(steps), str(written)]
            return self._measure(words, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _measure(self, words: list[str], folder: Path) -> Measurement:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(words) + "\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            return Measurement(failure="the process with the imports has ended")
        answer = json.loads(line)
        out = (folder / "out").read_text() if (folder / "out").exists() else ""
        lines = [each for each in out.splitlines() if each[:1] == "{"]
        if answer["code"] or not lines:
            last = (folder / "err").read_text().strip().splitlines()[-1:]
            return Measurement(failure=" ".join(last) or f"it ended with {answer['code']}")
        values = json.loads(lines[-1])
        files = [each for each in (folder / "written").rglob("*") if each.is_file()]
        return Measurement(
            statistics.median(values["step_ms"]),
            answer["ended"] - values["work_ended"],
            answer["host_bytes"],
            values["device_bytes"],
            sum(each.stat().st_size for each in files),
        )


def in_turn(
    workload: str, ways: Sequence[str], device: str, steps: int, limit_s: float
) -> dict[str, list[Measurement]]:
    """Measure each way once a round, so that a change of the machine meets all of them.

    Another of at most five rounds begins while `limit_s` is not over.
    """
    found: dict[str, list[Measurement]] = {way: [] for way in ways}
    server = Server("jax" if workload.startswith("jax") else "torch")
    try:
        end = time.monotonic() + limit_s
        for place in range(_MOST_ROUNDS):
            if place > 0 and time.monotonic() > end:
                break
            for way in ways:
                if not any(each.failure for each in found[way]):
                    found[way].append(server.measure(workload, way, device, steps))
    finally:
        server.close()
    return found


def rows(workload: str, found: dict[str, list[Measurement]]) -> Iterator[tuple[str, str]]:
    """Yield the lines of a table: what was run, and what it took."""
    plain = found["plain"]
    for way, runs in found.items():
        failure = next((each.failure for each in runs if each.failure), "")
        yield f"{workload}: {way}", failure or _figures(runs, plain)


def _figures(runs: list[Measurement], plain: list[Measurement]) -> str:
    """Say the medians; ratios are of the two runs of a round, with the least and the largest."""
    ratios = [run.step_ms / base.step_ms for run, base in zip(runs, plain, strict=False)]
    mib = {
        name: statistics.median(getattr(each, name) for each in runs) / 2**20
        for name in ("host_bytes", "device_bytes", "file_bytes")
    }
    return (
        f"{statistics.median(each.step_ms for each in runs):.3f} ms a step, "
        f"{statistics.median(ratios):.3f} x plain "
        f"({min(ratios):.3f} to {max(ratios):.3f} in {len(ratios)} rounds); "
        f"ends in {statistics.median(each.stop_s for each in runs):.2f} s; "
        f"host {mib['host_bytes']:.0f} MiB, device {mib['device_bytes']:.0f} MiB, "
        f"file {mib['file_bytes']:.2f} MiB"
    )
