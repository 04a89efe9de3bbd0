"""How much the operators of PyTorch compute, and how fast: by source line, and by operator and shapes.

Needs a profile recorded with ``--shapes``. Counts products, convolutions, attention and recurrent
layers (`model/flops.py`). The time is measured on the same operators, on the GPU if they ran there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.metric import CALL_DURATION_NS, GPU_TIME_NS
from deepcontext.profiler.model.flops import operator_flops
from deepcontext.profiler.model.grouping import NO_GROUP
from deepcontext.profiler.model.recorded_operators import has_shapes
from deepcontext.profiler.summaries.lines import UserLines
from deepcontext.profiler.summaries.steps import step_count

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from deepcontext.profiler.model.flops import OperatorFlops
    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

    Ints = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

# The rate of an operator with fewer operations, of a few short calls, says little.
_LEAST_SHARE: Final = 0.01


@dataclass(frozen=True, slots=True)
class Work:
    """Floating-point operations and the time they took.

    Attributes:
        flops: floating-point operations; a multiplication and an addition are two.
        time_ns: time of the operators, ns, summed over threads; 0 where it was not measured.
        calls: calls of the operators.
    """

    flops: float
    time_ns: int
    calls: int

    @property
    def flops_per_second(self) -> float:
        """Attained rate, 0 without a time."""
        return self.flops / self.time_ns * 1e9 if self.time_ns else 0.0


@dataclass(frozen=True, slots=True)
class LineWork:
    """What the operators of one line of the user's code compute, their backward included.

    Attributes:
        function: name of the function the line is in.
        file: source file.
        line: 1-based.
        work: without deeper lines of the user's code.
    """

    function: str
    file: str
    line: int
    work: Work


@dataclass(frozen=True, slots=True)
class ShapeWork:
    """What all calls of one operator with the same shapes compute.

    Attributes:
        name: of the operator, with the shapes of its inputs.
        work: of all calls.
    """

    name: str
    work: Work


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """The arithmetic of a run.

    Attributes:
        total: of all counted operators.
        lines: of lines of the user's code, most operations first.
        line_count: number of such lines; `lines` has the first.
        operators: by name and shapes, most operations first.
        operator_count: number of these.
        fastest_flops_per_second: the highest rate of one operator and its shapes that has at least a
            hundredth of all operations, 0 without times: what this machine attained in this run.
        unknown: calls of operators that multiply matrices whose sizes are not known, by name.
        steps: number of the program's steps, 0 if not known.
        is_on_gpu: whether times are times of kernels.
    """

    total: Work
    lines: tuple[LineWork, ...]
    line_count: int
    operators: tuple[ShapeWork, ...]
    operator_count: int
    fastest_flops_per_second: float
    unknown: Mapping[str, int]
    steps: int
    is_on_gpu: bool


def arithmetic(profile: Profile, limit: int = 0) -> Arithmetic | None:
    """Return the arithmetic of a run; None without shapes, or where nothing multiplies.

    Args:
        profile: the profile.
        limit: rows of each table, 0 for all.
    """
    calls = profile.metrics.get(CALL_DURATION_NS.name)
    if calls is None or not has_shapes(profile.frames):
        return None
    found: OperatorFlops = profile.once(
        "operator flops", lambda: operator_flops(profile.frames, profile.tree, calls)
    )
    if not len(found.nodes) and not found.unknown:
        return None
    time, is_on_gpu = _time(profile, found.nodes)
    lines, line_count = _lines(profile, found, time, limit)
    operators = _operators(profile, found, time)
    total = Work(float(found.values.sum()), int(time.sum()), int(found.calls.sum()))
    return Arithmetic(
        total=total,
        lines=lines,
        line_count=line_count,
        operators=operators[: limit or None],
        operator_count=len(operators),
        fastest_flops_per_second=max(
            (
                each.work.flops_per_second
                for each in operators
                if each.work.flops >= _LEAST_SHARE * total.flops
            ),
            default=0.0,
        ),
        unknown=found.unknown,
        steps=step_count(profile),
        is_on_gpu=is_on_gpu,
    )


def _time(profile: Profile, nodes: Ints) -> tuple[Ints, bool]:
    """Return the time of operators without their backward, ns, and whether it is a GPU's."""
    if GPU_TIME_NS.name in profile.metrics:
        on_gpu = _in_own_phase(profile, profile.exclusive(GPU_TIME_NS.name), nodes)
        if on_gpu.any():
            return on_gpu, True
    # A call of a forward operator does not contain its backward.
    return profile.exclusive(CALL_DURATION_NS.name)[nodes], False


def _in_own_phase(profile: Profile, values: Ints, nodes: Ints) -> Ints:
    """Return the sum of values at and below each node, of nodes of the same phase."""
    tree = profile.tree
    found = np.zeros(len(nodes), np.int64)
    for phase in np.unique(tree.phase[nodes]):
        of_phase = tree.phase[nodes] == phase
        inclusive = tree.inclusive(np.where(tree.phase == phase, values, 0))
        found[of_phase] = inclusive[nodes[of_phase]]
    return found


def _lines(
    profile: Profile, found: OperatorFlops, time: Ints, limit: int
) -> tuple[tuple[LineWork, ...], int]:
    lines = UserLines.of(profile)
    line = lines.of_node[found.nodes]
    has_line = line != NO_GROUP
    works, order = _grouped(
        line[has_line],
        found.values[has_line],
        time[has_line],
        found.calls[has_line],
        len(lines.frame),
    )
    rows = []
    for index in order[: limit or None]:
        frame = profile.frames[int(lines.frame[index])]
        rows.append(LineWork(frame.name, frame.file, frame.line, works(index)))
    return tuple(rows), len(order)


def _operators(profile: Profile, found: OperatorFlops, time: Ints) -> tuple[ShapeWork, ...]:
    frames = profile.frames
    name = frames.name[profile.tree.frame[found.nodes]]
    names, of_node = np.unique(name, return_inverse=True)
    works, order = _grouped(of_node, found.values, time, found.calls, len(names))
    return tuple(ShapeWork(frames.strings[int(names[index])], works(index)) for index in order)


class _Sums:
    """Sums over groups; calling it returns those of one group."""

    def __init__(self, flops: Floats, time: Floats, calls: Floats) -> None:
        self._flops, self._time, self._calls = flops, time, calls

    def __call__(self, index: int) -> Work:
        return Work(float(self._flops[index]), round(self._time[index]), round(self._calls[index]))


def _grouped(
    group: Ints, flops: Floats, time: Ints, calls: Ints, count: int
) -> tuple[_Sums, list[int]]:
    """Return the sums of each group, and the groups with operations, most operations first."""
    weights = (flops, time.astype(np.float64), calls.astype(np.float64))
    sums: list[Floats] = [
        np.bincount(group, weights=each, minlength=count).astype(np.float64) for each in weights
    ]
    order = np.argsort(-sums[0], kind="stable")
    return _Sums(*sums), order[sums[0][order] > 0].tolist()
