"""Does a line spend its time in a function of Python or a library that does more than the answer needs?

The functions and what to do about each are data (`catalogue/functions.toml`). Native functions are known from
samples between operators; a function in Python is what a line of the program called there. A line's time
without a processor counts as its running time does, because a quieter machine would have run it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deepcontext.analyzers import catalogue
from deepcontext.analyzers.causes import ELAPSED, Cause
from deepcontext.analyzers.shared.called_operators import entered
from deepcontext.profiler.format.metric import SAMPLED_CPU_TIME_NS, SAMPLED_READY_TIME_NS
from deepcontext.profiler.model.grouping import NO_GROUP, Groups
from deepcontext.profiler.model.metric_values import exclusive_or_zeros
from deepcontext.profiler.model.package import package_of
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.lines import UserLines
from deepcontext.profiler.summaries.native_callees import callee_of_node
from deepcontext.profiler.summaries.setup_time import compiling, importing, setup_time
from deepcontext.profiler.summaries.time_between_operators import on_main_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deepcontext.analyzers.shared.source_locations import Ints
    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.profile import Profile


def find(profile: Profile) -> Iterator[Cause]:
    """Return lines of the main thread with much time in such functions."""
    setup = setup_time(profile)
    if setup is None or setup.working_ns <= 0:
        return
    keys = catalogue.keys_of_functions()
    lines = UserLines.of(profile)
    spent = _spent(profile, lines)
    judged = on_main_threads(profile) & ~importing(profile) & ~compiling(profile)
    judged &= (lines.of_node != NO_GROUP) & (spent > 0)
    # A native function says more than the one in Python that called it, where both are known.
    for called, name_of in ((callee_of_node(profile), _native), (entered(profile), _in_python)):
        nodes = np.flatnonzero(judged & (called != NO_NODE))
        number, names = _numbers(profile, called[nodes], name_of)
        is_known = np.array([name in keys for name in names], np.bool_)[number]
        nodes, number = nodes[is_known], number[is_known]
        yield from _by_line(profile, nodes, number, names, spent, setup.working_ns)
        judged[nodes] = False


def _spent(profile: Profile, lines: UserLines) -> Ints:
    """Return the time of each node on or without a processor, ns, shape (nodes,).

    Samples of threads without a processor rarely know the native function, so the time of a line that they
    have is divided over its nodes as its running time is.
    """
    running = exclusive_or_zeros(profile, SAMPLED_CPU_TIME_NS.name)
    by_line = lines.sums(running)
    ready = lines.sums(exclusive_or_zeros(profile, SAMPLED_READY_TIME_NS.name))
    factor = 1 + ready / np.maximum(by_line, 1)
    of_node = np.where(lines.of_node == NO_GROUP, 0, lines.of_node)
    scaled = running * factor[of_node] if len(factor) else running
    return np.asarray(scaled).astype(np.int64)


def _by_line(
    profile: Profile, nodes: Ints, number: Ints, names: list[str], spent: Ints, whole: int
) -> Iterator[Cause]:
    lines = UserLines.of(profile)
    groups = Groups.of(lines.of_node[nodes], number, largest=spent[nodes])
    for line, name, rows in zip(*groups.keys, groups, strict=True):
        members = nodes[rows]
        yield Cause(
            key=catalogue.keys_of_functions()[names[name]],
            nodes=tuple(members.tolist()),
            weights=tuple(spent[members].tolist()),
            frame=lines.frame_of(profile, line),
            metric=ELAPSED,
            value=int(spent[members].sum()),
            whole=whole,
            words={"name": names[name]},
        )


def _numbers(
    profile: Profile, called: Ints, name_of: Callable[[Frame], str]
) -> tuple[Ints, list[str]]:
    """Return the function that each node called, as a number of the returned names."""
    frames, of_frame = np.unique(profile.tree.frame[called], return_inverse=True)
    names = [name_of(profile.frames[each]) for each in frames.tolist()]
    unique = sorted(set(names))
    place = {name: index for index, name in enumerate(unique)}
    return np.array([place[name] for name in names], np.int64)[of_frame], unique


def _native(frame: Frame) -> str:
    return frame.name


def _in_python(frame: Frame) -> str:
    return f"{package_of(frame.file).name}.{frame.name}"
