"""What ends a step of the program's main loop, and the section of a profile that says so.

The section is called `SECTION` and is one JSON object: `source`, the name of a `StepSource`; `what`, the
name of the scope, module or function whose end counts; `file` and `line` of the user's call, "" and 0
where unknown; `count`, the steps that have ended. Does not count steps (`native/core/steps.h`).
"""

from __future__ import annotations

import enum
from typing import Final

SECTION: Final = "steps"


class StepSource(enum.IntEnum):
    """What ends steps; of several, the one with the largest value counts.

    The values are those of the native core.
    """

    NONE = 0
    PROGRAM = 1
    MODULE = 2
    ENGINE = 3
    OPTIMIZER = 4
    MARK = 5
    TRACE = 6  # of another profiler's trace

    def explain(self, what: str) -> str:
        """Return what a step is in this run, for a sentence that begins with "a step is"."""
        return _EXPLANATIONS[self].format(what=what)


_EXPLANATIONS: Final = {
    StepSource.NONE: "unknown: the program marks none, and no optimizer, module or jitted function was seen "
    "to run twice",
    StepSource.PROGRAM: "a call of {what}, the jitted function with the most time in its calls",
    StepSource.MODULE: "a call of {what}, the outermost module",
    StepSource.ENGINE: "an iteration of the engine, {what}",
    StepSource.OPTIMIZER: "what ends with {what}",
    StepSource.MARK: "what ends with a call of deepcontext.step()",
    StepSource.TRACE: "what ends with a call of step() of torch.profiler",
}
