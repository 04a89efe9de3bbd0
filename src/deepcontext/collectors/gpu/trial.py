"""Try in a process of its own what a session will need: start the driver, count devices, subscribe.

A driver that hangs, crashes or keeps memory does so there. Makes no device node: callers ask
`missing_nvidia_nodes` first, because libcuda makes nodes that are missing when root loads it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PROGRAM: Final = Path(__file__).with_name("trial_program.py")
_TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of a trial.

    Attributes:
        devices: number of devices that the driver shows to a program.
        reason: why no session can record device work; "" where it can.
        library: of those given, the one that can.
        runtime_version: of HIP; 0 where it is not known.
    """

    devices: int
    reason: str
    library: str = ""
    runtime_version: int = 0


def try_nvidia(driver: str, *cupti: str) -> Trial:
    """Start the CUDA driver, count devices, subscribe to the first CUPTI that can, and unsubscribe."""
    advice = "check that nvidia-smi lists a GPU in this environment"
    return _checked(_ask("nvidia", driver, *cupti), advice, "CUDA_VISIBLE_DEVICES")


def try_amd(interface: str, profiler: str, hip: str) -> Trial:
    """Register with AMD's profiling library, start HIP, count devices, and end."""
    advice = "check that rocminfo lists a GPU in this environment"
    return _checked(_ask("amd", hip, interface, profiler), advice, "HIP_VISIBLE_DEVICES")


def _ask(*arguments: str) -> dict[str, object]:
    """Run the trial; its answer has "devices", or "failed" with a sentence."""
    command = [sys.executable, str(_PROGRAM), *arguments]
    try:
        done = subprocess.run(  # noqa: S603  the file beside this one
            command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"the driver did not answer within {_TIMEOUT_S:.0f} s"}
    except OSError as error:
        return {"failed": f"no process can be started to try the driver: {error}"}
    if done.returncode < 0:
        return {"failed": f"trying the driver ended with {signal.Signals(-done.returncode).name}"}
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"failed": f"trying the driver failed: {last}"}
    return dict(answer)


def _checked(answer: dict[str, object], advice: str, variable: str) -> Trial:
    devices = answer.get("devices")
    if isinstance(devices, int) and devices > 0:
        version = answer.get("runtime_version", 0)
        library = str(answer.get("library", ""))
        return Trial(devices, "", library, version if isinstance(version, int) else 0)
    failed = answer.get("failed") or "the driver shows no device"
    hidden = f" (${variable} is '{os.environ[variable]}')" if variable in os.environ else ""
    return Trial(0, f"{failed}{hidden}; {advice}")
