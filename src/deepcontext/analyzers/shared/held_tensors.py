"""Tensors that a Python object keeps: which object, and whether it keeps graphs that nothing will use.

Needs what the profiler saw when it looked which objects hold tensors. An object is named only where the
tensors were made at the line in question, or where all that was ever made there is alive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.summaries.holders import Holder, holders
from deepcontext.profiler.summaries.steps import step_count

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_FEWEST: Final = 32
_LEAST_BYTES: Final = 1 << 20
# Of what was ever made: a list that each step makes anew has less, except in the first steps.
_LEAST_KEPT: Final = 0.9
_FEWEST_STEPS: Final = 5
_LEAST_GRAPHS: Final = 0.5


def holder_of(profile: Profile, file: str, line: int) -> Holder | None:
    """Return the object with most tensors made at a line."""
    return next((each for each in _holders(profile) if each.made_at(file, line)), None)


def text(holder: Holder) -> str:
    """Return ``list Trainer.logged holds 1200 tensors, 1200 with a graph``."""
    least = "" if holder.is_complete else "at least "
    graphs = f", {holder.with_graph} with a graph" if holder.with_graph else ""
    return f"{holder.name} holds {least}{holder.tensors} tensors{graphs}"


def evidence(holder: Holder) -> dict[str, int | float | str]:
    """Return what was seen of a holder."""
    return {
        "holder": holder.name,
        "held_tensors_count": holder.tensors,
        "held_graphs_count": holder.with_graph,
        "held_bytes": holder.size_bytes,
    }


def advice(holder: Holder) -> str:
    """Return what to do about an object that keeps tensors."""
    if holder.name.startswith("a traceback"):
        return (
            "do not keep the exception: its traceback keeps the variables of all functions that it left; "
            "keep its text, or call traceback.clear_frames(error.__traceback__)"
        )
    if holder.with_graph:
        return (
            "keep numbers (.item(), float()) or detached tensors (.detach()) in it: a list of tensors with "
            "graphs keeps the activations of all past steps"
        )
    return "bound it (collections.deque(maxlen=...)), or keep what is needed of each tensor on the host"


def kept_graphs(profile: Profile) -> list[tuple[Holder, Frame | None, tuple[int, ...]]]:
    """Return the object that keeps most graphs of all past steps, and where these were made.

    A loss that is kept after its backward keeps little, so the tensors themselves must be large.
    """
    if step_count(profile) < _FEWEST_STEPS and (profile.tree.phase == Phase.BACKWARD).any():
        return []  # few steps: all that was made may be alive
    return [
        (each, *_line(profile, each))
        for each in _holders(profile)
        if each.with_graph >= max(_FEWEST, _LEAST_GRAPHS * each.tensors)
        and each.kept_share >= _LEAST_KEPT
        and each.size_bytes >= _LEAST_BYTES
        and each.places
    ][:1]


def _line(profile: Profile, holder: Holder) -> tuple[Frame | None, tuple[int, ...]]:
    """Return the innermost line of the user's code that made the tensors, and its nodes."""
    frames, tree = profile.frames, profile.tree
    is_user = frames.is_user_code() & (frames.kind == FrameKind.PYTHON)
    for file, line, _ in reversed(holder.places[0]):
        known = [
            each
            for each in np.flatnonzero(is_user & (frames.line == line)).tolist()
            if frames.strings[int(frames.file[each])] == file
        ]
        nodes = np.flatnonzero(np.isin(tree.frame, known))
        if len(nodes):
            return profile.frame(int(nodes[0])), tuple(nodes.tolist()[:8])
    return None, ()


def _holders(profile: Profile) -> tuple[Holder, ...]:
    try:
        return holders(profile)
    except ProfileDataError:  # of a newer version
        return ()
