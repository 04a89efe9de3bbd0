"""The calls of a compiled JAX program in the tree, by the compiler's name, and where the host waits for one.

Functions of the same name are not told apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.shared.source_locations import nodes_named
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import DEVICE_TIME_NS, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import inclusive_or_zeros
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.summaries.jax.programs import plain_name

if TYPE_CHECKING:
    from deepcontext.analyzers.shared.source_locations import Mask
    from deepcontext.profiler.model.profile import Profile

_WAITS: Final = frozenset({"jax: wait for the device", "jax: copy to host"})


def function_of(program: str) -> str:
    """Return the plain name of the function that a program was compiled for.

    Args:
        program: the compiler's name, with or without the types of the arguments.
    """
    return plain_name(program.partition("(")[0].partition("#")[0])


def calls_of(profile: Profile, program: str) -> list[int]:
    """Return the nodes that call a program, the costliest first.

    Args:
        profile: the profile.
        program: the compiler's name, as for `function_of`.
    """
    name = function_of(program)
    nodes = Query(profile).kind(FrameKind.OPERATOR).nodes()
    frames = profile.frames
    texts, text = np.unique(frames.name[profile.tree.frame[nodes]], return_inverse=True)
    is_program = [plain_name(frames.strings[each]) == name for each in map(int, texts)]
    found = nodes[np.array(is_program, np.bool_)[text]]
    cost = inclusive_or_zeros(profile, HOST_TIME_NS.name)[found]
    cost = cost + inclusive_or_zeros(profile, DEVICE_TIME_NS.name)[found]
    return [int(each) for each in found[np.argsort(-cost, kind="stable")]]


def waits(profile: Profile) -> Mask:
    """Return which nodes are waits for values of a program, shape (nodes,)."""
    mask = np.zeros(len(profile.tree), np.bool_)
    for kind in (FrameKind.OPERATOR, FrameKind.SCOPE, FrameKind.MARKER, FrameKind.COPY):
        mask |= nodes_named(profile, kind, _WAITS).mask()
    return mask
