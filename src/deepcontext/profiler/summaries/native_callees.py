"""Which native functions the lines of a program run between operators, from samples.

Such a function is the outermost native frame below a line's Python frames: what Python called, with
everything below. Threads that another thread has kept from running were not asked, so values are shares of
the samples of running threads. Reads metrics, formats nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import SAMPLED_CPU_TIME_NS
from deepcontext.profiler.model.grouping import NO_GROUP, Groups
from deepcontext.profiler.model.metric_values import exclusive_or_zeros
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.lines import UserLines

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

    Ints = npt.NDArray[np.int64]

_CPU: Final = SAMPLED_CPU_TIME_NS.name
# An address in a file, and a mangled name of Rust.
_UNKNOWN: Final = re.compile(r"(?P<file>[^/]+)\+0x[0-9a-f]+|_R(?P<rust>[A-Z]\w+)")


@dataclass(frozen=True, slots=True)
class Callee:
    """A native function that one line runs.

    Attributes:
        name: of the function, as Python calls it where that is known; of its library where it has none.
        time_ns: sampled time on processors, of all threads.
        nodes: the nodes with this time, the costliest first.
    """

    name: str
    time_ns: int
    nodes: tuple[int, ...]


def callees(profile: Profile) -> dict[int, tuple[Callee, ...]]:
    """Return the native functions of each line that has any, by the line's number in `UserLines`.

    Largest first; computed once.
    """
    return profile.once(callees, lambda: _callees(profile))


def callee_of_node(profile: Profile) -> Ints:
    """Return the outermost native frame of each node's native path, or `NO_NODE`, shape (nodes,)."""
    tree = profile.tree
    is_native = profile.is_kind(FrameKind.NATIVE)
    above = np.where(tree.parent == NO_NODE, 0, tree.parent)
    outermost = tree.nearest(is_native & ~is_native[above])
    return np.where(is_native, outermost, NO_NODE)


def name_of(frame: Frame) -> str:
    """Return the name of a native function, or ``code of writers`` where it has none that says more.

    An address says nothing to a reader, and the addresses of a library are one callee.
    """
    unknown = _UNKNOWN.fullmatch(frame.name)
    if unknown is None:
        return frame.name
    before, _, path = (frame.file or unknown["file"] or "").rpartition("/site-packages/")
    *packages, library = PurePath(path).parts or ("",)
    module = [*packages, library.partition(".")[0]] if before else [library.partition(".")[0]]
    return f"code of {'.'.join(module)}" if library else frame.name


def _callees(profile: Profile) -> dict[int, tuple[Callee, ...]]:
    spent = exclusive_or_zeros(profile, _CPU)
    outermost, line = callee_of_node(profile), UserLines.of(profile).of_node
    nodes = np.flatnonzero((spent > 0) & (outermost != NO_NODE) & (line != NO_GROUP))
    if not len(nodes):
        return {}
    frames, of_node = np.unique(profile.tree.frame[outermost[nodes]], return_inverse=True)
    names = [name_of(profile.frames[each]) for each in frames.tolist()]
    unique = list(dict.fromkeys(names))
    place = {each: number for number, each in enumerate(unique)}
    name = np.array([place[each] for each in names], np.int64)[of_node]
    groups = Groups.of(line[nodes], name, largest=spent[nodes])
    found: dict[int, list[Callee]] = {}
    for number, text, members in zip(*groups.keys, groups, strict=True):
        of_callee = nodes[members]
        callee = Callee(unique[int(text)], int(spent[of_callee].sum()), tuple(of_callee.tolist()))
        found.setdefault(int(number), []).append(callee)
    return {
        number: tuple(sorted(each, key=lambda callee: -callee.time_ns))
        for number, each in found.items()
    }
