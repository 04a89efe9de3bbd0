"""Time of packages below the one user line that has nearly all of the time.

Where a program leaves its work to a library (`trainer.train()`, `llm.generate(...)`), or a library
started the program, one line has nearly all of the time and explains nothing. Its time is then
attributed to the lines of the packages below.
Invariant: the time of each node belongs to at most one line of one package.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import SAMPLED_CPU_TIME_NS, SAMPLED_WAIT_TIME_NS
from deepcontext.profiler.model import elapsed
from deepcontext.profiler.model.grouping import NO_GROUP, sums
from deepcontext.profiler.model.metric_values import exclusive_or_zeros
from deepcontext.profiler.model.package import Origin, Package, package_of
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries import time_between_operators
from deepcontext.profiler.summaries.groups import FrameGroups
from deepcontext.profiler.summaries.lines import UserLines
from deepcontext.profiler.summaries.setup_time import importing

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

# From this share on, the line does not say where in the program the time goes.
ONE_LINE_SHARE: Final = 2 / 3
# Below this share the program mostly imports libraries, which `setup_time` reports.
_LEAST_WORK: Final = 0.1
# Packages must account for this share of the line's time to justify a table.
_LEAST_EXPLAINED: Final = 0.1


@dataclass(frozen=True, slots=True)
class PackageLine:
    """A line of a package.

    Attributes:
        frame: the function, its file and the line.
        path: the file, relative to the folder of all packages.
        time_ns: elapsed time, without deeper lines of packages.
    """

    frame: Frame
    path: str
    time_ns: int


@dataclass(frozen=True, slots=True)
class LibraryTime:
    """How the time of one line splits into packages.

    Attributes:
        line: the user line; None where no user line is on the call paths.
        time_ns: elapsed time of the line including everything it calls, without imports.
        packages: name and time of each package, largest first.
        lines: lines of the packages, largest first.
        line_count: number of lines, shown or not.
    """

    line: Frame | None
    time_ns: int
    packages: tuple[tuple[str, int], ...]
    lines: tuple[PackageLine, ...]
    line_count: int


def one_line(lines: UserLines, values: Ints) -> int | None:
    """Return the user line that has nearly all of the values, `NO_GROUP` for nodes without a line.

    Args:
        lines: the user lines of the profile.
        values: exclusive value of each node, shape (nodes,).

    Returns:
        None where several lines share the values, or all values are 0.
    """
    total = int(values.sum())
    by_line = np.append(lines.sums(values), values[lines.of_node == NO_GROUP].sum())
    largest = int(np.argmax(by_line))
    if not total or by_line[largest] < ONE_LINE_SHARE * total:
        return None
    return largest if largest < len(lines.frame) else NO_GROUP


def library_time(profile: Profile, limit: int = 0) -> LibraryTime | None:
    """Return the packages below the one line, None where there is no such line or package.

    Args:
        profile: the profile to summarize.
        limit: number of lines, 0 for all.
    """
    found = profile.once("library time", lambda: _library_time(profile))
    return found and replace(found, lines=found.lines[: limit or None])


def _library_time(profile: Profile) -> LibraryTime | None:
    values, lines = _elapsed_ns(profile), UserLines.of(profile)
    whole = int(values.sum())
    values = np.where(importing(profile), 0, values)
    line = one_line(lines, values)
    if line is None or values.sum() < _LEAST_WORK * whole:
        return None
    values = np.where(lines.of_node == line, values, 0)
    has_operators = bool(elapsed.in_operators(profile.frames, profile.tree, profile.metrics).any())
    packages = _packages(profile)
    # Operators and modules describe what frameworks do. Without operators, any library is informative.
    tiers = [{Origin.INSTALLED}] if has_operators else [{Origin.INSTALLED}, set(Origin)]
    for origins in tiers:
        wanted = origins - {Origin.USER, Origin.GENERATED}
        found = _explained(profile, values, packages, wanted)
        if found[1].sum() >= _LEAST_EXPLAINED * values.sum():
            frame = None if line == NO_GROUP else profile.frames[int(lines.frame[line])]
            return _of_lines(profile, frame, int(values.sum()), found)
    return None


def _elapsed_ns(profile: Profile) -> Ints:
    """Return elapsed ns of each node of the main thread."""
    values = elapsed.in_operators(profile.frames, profile.tree, profile.metrics)
    for metric in (SAMPLED_CPU_TIME_NS, SAMPLED_WAIT_TIME_NS):
        values = values + exclusive_or_zeros(profile, metric.name)
    return np.where(time_between_operators.on_main_threads(profile), values, 0)


def _packages(profile: Profile) -> dict[int, Package]:
    """Return the package of each file of Python frames, by the index of the file's string."""
    frames = profile.frames
    files = np.unique(frames.file[frames.kind == FrameKind.PYTHON])
    return {int(file): package_of(frames.strings[int(file)]) for file in files}


def _explained(
    profile: Profile, values: Ints, packages: dict[int, Package], origins: set[Origin]
) -> tuple[Ints, Ints]:
    """Return the first frame of each line of these packages, and the time of each line."""
    tree, frames = profile.tree, profile.frames
    files = [file for file, package in packages.items() if package.origin in origins]
    is_wanted = (frames.kind == FrameKind.PYTHON) & np.isin(frames.file, files)
    nearest = tree.nearest(is_wanted[tree.frame])
    nearest_user = tree.nearest(profile.is_user_code()[tree.frame])
    # Node ids increase towards the leaves: a package above the user line only called that line.
    counts = (values != 0) & (nearest != NO_NODE) & (nearest > nearest_user)
    lines = FrameGroups.of_frames(np.ones(len(frames), np.bool_), frames.source_line())
    of_line = lines.of_frame[tree.frame[nearest[counts]]]
    return lines.example, sums(of_line, values[counts], len(lines.example))


def _of_lines(
    profile: Profile, line: Frame | None, total: int, found: tuple[Ints, Ints]
) -> LibraryTime:
    first, times = found
    order = np.lexsort((first, -times))
    order = order[times[order] > 0]
    rows, packages = [], dict[str, int]()
    for index in order.tolist():
        frame, time_ns = profile.frames[int(first[index])], int(times[index])
        package = package_of(frame.file)
        packages[package.name] = packages.get(package.name, 0) + time_ns
        rows.append(PackageLine(frame, package.path, time_ns))
    largest = sorted(packages.items(), key=lambda item: -item[1])
    return LibraryTime(line, total, tuple(largest), tuple(rows), len(rows))
