"""Compare a profile's kernels with another profiler's, and find the lines that they are under.

Runs no program. Invariant: a kernel that only one of two profilers saw is never left out of a comparison.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format.frame import FrameKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import deepcontext
    from deepcontext.profiler.format.frame import Phase

    # Of a kernel, by its name, in one session: how often it ran, and its ns in all.
    Kernels = Mapping[str, Sequence[float]]

# Below these, the steps of the device's clock are a larger share than what is compared.
_LEAST_NS: Final = 10_000
_LEAST_SHARE: Final = 0.01


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two profilers differ on the same work.

    Attributes:
        unequal: kernels by name, with how often each of the two saw them, where that differs.
        compared: kernels whose times were compared.
        deviation: of the kernel whose medians differ most, as a share of the other profiler's.
        kernel: that kernel.
    """

    unequal: dict[str, tuple[int, int]]
    compared: int
    deviation: float
    kernel: str


def compare(own: Sequence[Kernels], other: Sequence[Kernels]) -> Comparison:
    """Compare sessions of the same work: counts of each kernel, and medians of its mean times."""
    names = sorted({name for session in (*own, *other) for name in session})
    unequal = {
        name: (ours, theirs)
        for name in names
        if (ours := _count(own, name)) != (theirs := _count(other, name))
    }
    whole = sum(entry[1] for session in other for entry in session.values())
    deviations = {
        name: abs(_median_ns(own, name) / _median_ns(other, name) - 1)
        for name in names
        if name not in unequal and _matters(other, name, whole)
    }
    worst = max(deviations, key=deviations.__getitem__, default="")
    return Comparison(unequal, len(deviations), deviations.get(worst, 0.0), worst)


def _count(sessions: Sequence[Kernels], name: str) -> int:
    return sum(int(session[name][0]) for session in sessions if name in session)


def _median_ns(sessions: Sequence[Kernels], name: str) -> float:
    return statistics.median(
        session[name][1] / session[name][0] for session in sessions if name in session
    )


def _matters(sessions: Sequence[Kernels], name: str, whole: float) -> bool:
    ns = sum(session[name][1] for session in sessions if name in session)
    return ns >= _LEAST_SHARE * whole and _median_ns(sessions, name) >= _LEAST_NS


def share_on_lines(
    profile: deepcontext.Profile,
    file: str,
    phase: Phase | None = None,
    kind: FrameKind | None = None,
    operator: str = "",
) -> float:
    """Return the share of the device's time that is under a line of a file.

    Args:
        profile: what to look at.
        file: end of the file's path.
        phase: look at this phase alone.
        kind: a frame of this kind must be above the kernel, too.
        operator: look only below operators whose name begins so.
    """
    times = profile.exclusive("gpu_time_ns")
    found = whole = 0
    for node in times.nonzero()[0].tolist():
        if phase is not None and int(profile.tree.phase[node]) != phase:
            continue
        path = [profile.frame(at) for at in profile.tree.path(node)]
        operators = [f.name for f in path if f.kind is FrameKind.OPERATOR]
        if operator and not any(name.startswith(operator) for name in operators):
            continue
        whole += int(times[node])
        is_below = any(f.kind is FrameKind.PYTHON and f.file.endswith(file) for f in path)
        if is_below and (kind is None or any(f.kind is kind for f in path)):
            found += int(times[node])
    return found / whole if whole else 0.0
