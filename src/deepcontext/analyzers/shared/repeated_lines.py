"""Which nodes run in each step, as far as the numbers of calls of operators tell.

Samples do not say how often a line ran, so that setting up a program looks like work of its steps.
Operators do: a line that calls one once a step, or a fixed number of times, lies in the loop over the
steps. Does not judge lines (`host_work.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import CALL_DURATION_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros
from deepcontext.profiler.model.tree import NO_NODE

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.model.profile import Profile

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

# Calls of an operator in a step: one, with room for steps that skip it or repeat it.
_ABOUT_ONCE: Final = (0.8, 1.2)


def repeated(profile: Profile, steps: int, is_user: Mask) -> Mask:
    """Return which nodes run in each step, shape (nodes,), bool; nodes may be missing.

    In a function of the user's, two lines that call an operator in each step lie in the loop over the
    steps, or in a function that the loop calls. So do the lines between them, and other lines of this
    function that lead to such an operator; and whatever these lines call.

    Args:
        profile: the profile.
        steps: number of steps, at least 1.
        is_user: `FrameTable.is_user_code`.
    """
    tree = profile.tree
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
    least, most = (bound * steps for bound in _ABOUT_ONCE)
    in_steps = ((calls >= least) & (calls <= most)) | ((calls > most) & (calls % steps == 0))
    is_operator = profile.is_kind(FrameKind.OPERATOR)
    compiles = tree.at_or_below(source_locations.compiling(profile).mask())
    of_step = is_operator & ~compiles & in_steps
    of_user = is_user[tree.frame]
    owners = np.unique(tree.nearest(of_user)[of_step])
    owners = owners[owners != NO_NODE]
    users = np.flatnonzero(of_user)
    group = _activations(profile, users)
    first, last = _spans(profile, group, np.isin(users, owners))
    line = profile.frames.line[tree.frame[users]].astype(np.int64)
    leads = tree.inclusive(of_step.astype(np.int64))[users] > 0
    in_loop = (last > first)[group] & (leads | ((line >= first[group]) & (line <= last[group])))
    mask = np.zeros(len(tree), np.bool_)
    mask[users[in_loop]] = True
    return tree.at_or_below(mask)


def _activations(profile: Profile, users: Ints) -> Ints:
    """Return for each node of user code a number of its function and caller, shape (users,)."""
    frames, tree = profile.frames, profile.tree
    function = (frames.file.astype(np.int64) << 32) | frames.name
    _, of_frame = np.unique(function, return_inverse=True)
    key = tree.parent[users].astype(np.int64) * (len(frames) + 1) + of_frame[tree.frame[users]]
    return np.asarray(np.unique(key, return_inverse=True)[1])


def _spans(profile: Profile, group: Ints, is_owner: Mask) -> tuple[Ints, Ints]:
    """Return the first and the last line of the owners in each group; no span: last < first."""
    users = np.flatnonzero(profile.frames.is_user_code()[profile.tree.frame])
    line = profile.frames.line[profile.tree.frame[users]].astype(np.int64)
    count = int(group.max(initial=-1)) + 1
    first = np.full(count, np.iinfo(np.int64).max)
    last = np.full(count, -1)
    np.minimum.at(first, group[is_owner], line[is_owner])
    np.maximum.at(last, group[is_owner], line[is_owner])
    return first, last
