"""Kept steps in words, for the report, the page and exports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.model.exemplars import ExemplarReason
from deepcontext.ui.format import format_ns, shorten_path

if TYPE_CHECKING:
    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.exemplars import Exemplar, Lane
    from deepcontext.profiler.summaries.kept_steps import Cause

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
