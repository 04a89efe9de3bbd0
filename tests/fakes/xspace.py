"""What XLA's host tracer records in a window (XSpace), made without XLA.

Field numbers: tsl/profiler/protobuf/xplane.proto, as in `native/jax/xspace.cpp`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hlo import field

if TYPE_CHECKING:
    from collections.abc import Sequence

_STATS = {1: "hlo_op", 2: "hlo_module", 3: "program_id", 4: "run_id"}


@dataclass(frozen=True, slots=True)
class Executed:
    """One execution of an operation, in ps since the start of the window."""

    module: str
    program_id: int
    run_id: int
    operation: str
    start_ps: int
    duration_ps: int


def window(executed: Sequence[Executed]) -> bytes:
    """Return the trace of a window in which these operations ran on one thread."""
    line = field(1, 7) + b"".join(field(4, _event(each)) for each in executed)
    plane = field(2, "/host:CPU") + field(3, line) + _named(4, 1, "operation")
    return field(1, plane + b"".join(_named(5, key, name) for key, name in _STATS.items()))


def _event(executed: Executed) -> bytes:
    return (
        field(1, 1)
        + field(2, executed.start_ps)
        + field(3, executed.duration_ps)
        + field(4, field(1, 1) + field(5, executed.operation))
        + field(4, field(1, 2) + field(5, executed.module))
        + field(4, field(1, 3) + field(4, executed.program_id))
        + field(4, field(1, 4) + field(4, executed.run_id))
    )


def _named(number: int, key: int, name: str) -> bytes:
    """Return an entry of a map from a number to what has a name."""
    return field(number, field(1, key) + field(2, field(1, key) + field(2, name)))
