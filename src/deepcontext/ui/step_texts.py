"""Kept steps in words, for the report, the page and exports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.model.exemplars import ExemplarReason
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.lines import nearest_user
from deepcontext.ui.format import format_ns, shorten_path

if TYPE_CHECKING:
    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.exemplars import Exemplar, Lane
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.kept_steps import Cause

# Python frames of libraries say little beside modules and operators.
_SHOWN: Final = frozenset(FrameKind) - {
    FrameKind.ROOT,
    FrameKind.THREAD,
    FrameKind.PYTHON,
    FrameKind.RANK,
}
_REASONS: Final = {
    ExemplarReason.SLOW: "among the slowest",
    ExemplarReason.RANDOM: "chosen at random",
    ExemplarReason.MARKED: "marked by the program",
}


def why_kept(exemplar: Exemplar) -> str:
    """Say why a step was kept."""
    return ", ".join(words for reason, words in _REASONS.items() if reason in exemplar.reasons)


def lane_name(lane: Lane) -> str:
    """Return the name of a lane: of a thread, or "GPU 0, stream 7"."""
    return lane.name if lane.device is None else f"GPU {lane.device}, stream {lane.stream}"


def path_text(profile: Profile, node: int) -> str:
    """Return a path from the line of the user's code on: "train.py:21 > Linear 'out' > aten::addmm"."""
    user = int(nearest_user(profile)[node])
    frames = [profile.frame(each) for each in profile.tree.path(node) if each > user]
    names = [each.name for each in frames if each.kind in _SHOWN]
    if user != NO_NODE:
        line = profile.frame(user)
        names.insert(0, f"{shorten_path(line.file, profile.run.cwd)}:{line.line}")
    return " > ".join(names)


def cause_texts(cause: Cause, cwd: str) -> tuple[str, str]:
    """Return how much more time a step took than a usual one, and where: "22.1 ms", "train.py:21"."""

    def place(frame: Frame | None) -> str:
        return "" if frame is None else f"{shorten_path(frame.file, cwd)}:{frame.line}"

    if cause.pause is not None:
        before, after = map(place, cause.pause)
        sides = [f"after {before}" if before else "", f"before {after}" if after else ""]
        where = " ".join(["outside operators", *filter(None, sides)])
    else:
        where = place(cause.line) or "operators that no line of yours called"
    return format_ns(max(cause.own_ns - cause.usual_ns, 0)), where
