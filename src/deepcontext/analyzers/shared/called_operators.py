"""Which operators a line of the user calls itself, and how often a function calls modules.

Methods of tensors and functions of torch that only pass their arguments on (`Tensor.norm`, `2 - tensor`)
count as the line's own call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.shared import libraries, source_locations
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros, inclusive_or_zeros
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.lines import nearest_user

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

NO_FUNCTION: Final = -1
# The others of a program cost little.
_MOST_MODULES: Final = 32
_PASSING_ON: Final = ("/torch/_tensor.py", "/torch/functional.py")


def called_by_user(profile: Profile) -> source_locations.Mask:
    """Return which nodes the user's code calls without a function of a library between, shape (nodes,)."""

    def compute() -> source_locations.Mask:
        tree = profile.tree
        caller = tree.nearest(~libraries.of_files(profile, _passes_on)[tree.frame])
        above = np.where(tree.parent == NO_NODE, NO_NODE, caller[tree.parent])
        return np.asarray((above != NO_NODE) & profile.is_user_code()[tree.frame[above]])

    return profile.once(called_by_user, compute)


def _passes_on(file: str) -> bool:
    return file.endswith(_PASSING_ON)


def module_calls(profile: Profile, modules: source_locations.Ints) -> source_locations.Ints:
    """Return how often each of some modules was called, shape (modules,), 0 without operators.

    Calls of modules are not counted. Most operators of a module run once for each call: others are in a loop,
    or made something once. So the most frequent number of calls is the module's.
    """
    tree = profile.tree
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
    found = np.zeros(len(modules), np.int64)
    for index, node in enumerate(modules.tolist()):
        inside = slice(node, int(tree.subtree_end[node]))
        is_judged = (calls[inside] > 0) & (tree.phase[inside] != Phase.BACKWARD)
        numbers, often = np.unique(calls[inside][is_judged], return_counts=True)
        found[index] = numbers[often.argmax()] if len(numbers) else 0
    return found


def called_modules(profile: Profile) -> source_locations.Ints:
    """Return the modules that are called outside of modules, the costliest first, and no more than some."""

    def compute() -> source_locations.Ints:
        outermost = profile.tree.outermost(profile.is_kind(FrameKind.MODULE))
        value = inclusive_or_zeros(profile, HOST_TIME_NS.name)[outermost]
        return np.asarray(outermost[np.argsort(-value, kind="stable")][:_MOST_MODULES], np.int64)

    return profile.once(called_modules, compute)


def model_calls(profile: Profile) -> int:
    """Return how often the program called its model: most calls of a module outside of modules, on a path."""
    return int(module_calls(profile, called_modules(profile)).max(initial=0))


def entered(profile: Profile) -> source_locations.Ints:
    """Return the frame of a library that the user's code called, or the user's frame, above each node.

    Shape (nodes,); `NO_NODE` where neither is.
    """
    tree = profile.tree
    of_user = profile.is_user_code()[tree.frame]
    is_frame = profile.is_kind(FrameKind.PYTHON, FrameKind.MODULE)
    above = np.where(tree.parent == NO_NODE, NO_NODE, tree.nearest(is_frame)[tree.parent])
    is_entered = is_frame & ~of_user & (above != NO_NODE) & of_user[above]
    return tree.nearest(is_entered | of_user)


def functions_of_nodes(profile: Profile) -> source_locations.Ints:
    """Return a number for the user's function that each node runs in, shape (nodes,)."""
    return profile.once(functions_of_nodes, lambda: _functions_of_nodes(profile))


def _functions_of_nodes(profile: Profile) -> source_locations.Ints:
    frames, tree = profile.frames, profile.tree
    is_user = profile.is_user_code()
    numbers: dict[tuple[int, str], int] = {}
    of_frame = np.full(len(frames), NO_FUNCTION, np.int64)
    indices = np.flatnonzero(is_user)
    columns = (each[indices].tolist() for each in (frames.name, frames.file))
    of_user = []
    for text, file in zip(*columns, strict=True):
        name = frames.strings[int(text)]
        if "<" in name:
            name = source_locations.without_inner(name)
        of_user.append(numbers.setdefault((file, name), len(numbers)))
    of_frame[indices] = of_user
    nearest = nearest_user(profile)
    return np.where(nearest == NO_NODE, NO_FUNCTION, of_frame[tree.frame[nearest]])
