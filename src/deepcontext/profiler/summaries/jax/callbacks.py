"""Python functions that compiled JAX programs call: `jax.debug.callback`, `pure_callback`, `io_callback`.

Reads the section "jax" that the collector wrote. Does not judge what the calls cost.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format.user_code import is_user_file
from deepcontext.profiler.model.place import Place
from deepcontext.profiler.summaries.jax.programs import section

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

# Source: jaxlib's names of the calls: xla_ffi_python_cpu_callback, xla_python_gpu_callback.
_TARGET: Final = re.compile(r"python_\w*callback")
_LOOP: Final = "/while/body/"


@dataclass(frozen=True, slots=True)
class Callback:
    """A call of Python in a compiled program.

    Attributes:
        module: the compiler's name of the program.
        primitive: JAX's name of the call: "debug_callback".
        source: innermost line of the user's code; `file` is "" where there is no such line.
        is_in_loop: whether a loop of the program (`scan`, `fori_loop`, `while_loop`) makes the call.
        host_ns: time over the run; 0 where the program never ran completely while it was sampled.
        executions: number of timed executions.
    """

    module: str
    primitive: str
    source: Place
    is_in_loop: bool
    host_ns: int
    executions: int


def callbacks(profile: Profile) -> tuple[Callback, ...]:
    """List the calls of Python in compiled programs, those that took most first."""
    content = section(profile) or {}
    times = {
        (program, index): (executions, spent_ns)
        # Earlier versions counted the calls as work of the device.
        for program, index, executions, spent_ns in (
            *content.get("times", ()),
            *content.get("callbacks", ()),
        )
    }
    found = []
    for program in content.get("programs", ()):
        lines = [Place(*line) for line in program["lines"]]
        for index, operation in enumerate(program["operations"]):
            if not _TARGET.search(operation.get("detail", "")):
                continue
            own = [lines[each] for each in operation["lines"] if is_user_file(lines[each].file)]
            executions, host_ns = times.get((program["uid"], index), (0, 0))
            found.append(
                Callback(
                    program["module"],
                    operation.get("primitive", ""),
                    own[-1] if own else Place("", "", 0),
                    _LOOP in operation.get("op_name", ""),
                    host_ns,
                    executions,
                )
            )
    return tuple(sorted(found, key=lambda each: -each.host_ns))
