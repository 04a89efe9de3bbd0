"""Measure what this machine computes and moves a second at most, in a process of its own.

Stores nothing (`profiler/format/peaks.py` does).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

from deepcontext.errors import EnvironmentProblem
from deepcontext.profiler.format.peaks import DevicePeaks, this_cpu

_PROGRAM: Final = Path(__file__).with_name("peak_program.py")
_TIMEOUT_S: Final = 300.0


def measure_peaks() -> tuple[DevicePeaks, ...]:
    """Return the peaks of this machine's CPU, for all of torch's threads and for one.

    Raises:
        EnvironmentProblem: torch is not installed, or measuring failed.
    """
    try:
        done = subprocess.run(  # noqa: S603  the file beside this one
            [sys.executable, "-P", str(_PROGRAM)],
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise EnvironmentProblem(
            f"peaks were not measured within {_TIMEOUT_S:.0f} s; try again on a machine with less load"
        ) from error
    try:
        rows = json.loads(done.stdout)
    except ValueError:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise EnvironmentProblem(
            f"cannot measure peaks with torch: {last}; install torch"
        ) from None
    model, cores = this_cpu()
    return tuple(DevicePeaks(device=model, cores=cores, **row) for row in rows)
