"""The steps that the native core has found, as the profile file holds them.

Does not decide what a step is (`native/core/steps.h`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.step_source import StepSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext._native import StepsFound

_Frame = tuple[int, str, str, int]


def marked(found: StepsFound) -> int:
    """Return the number of steps that the program itself marked."""
    return found["steps"] if found["source"] == StepSource.MARK else 0


def section(found: StepsFound) -> bytes:
    """Return the section of the profile; `step_source.py` says what is in it."""
    source, path = StepSource(found["source"]), found["path"]
    place = _named(source, path)
    called = path[: path.index(place)] if place else path
    line = next((frame for frame in reversed(called) if frame[0] == FrameKind.PYTHON), None)
    content = {
        "source": source.name.lower(),
        "what": place[1] if place else "",
        "file": line[2] if line else "",
        "line": line[3] if line else 0,
        "count": found["steps"],
        "bins": [(round(duration), count) for duration, count in found["bins"]],
        "parts": found["parts"],
        "slowest": sorted(found["slowest"], key=lambda step: -step[2]),
        "slow": sorted(found["slow"]),
        "slow_count": found["slow_count"],
        "slow_total_ns": found["slow_total_ns"],
    }
    return json.dumps(content).encode()


def _named(source: StepSource, path: Sequence[_Frame]) -> _Frame | None:
    """Return the frame that names what ends a step: a module's first operator stands for the module."""
    if source is StepSource.MODULE:
        return next((frame for frame in path if frame[0] == FrameKind.MODULE), None)
    return path[-1] if path else None
