"""The texts of a finding, shared by the report, the page and Markdown. Does not draw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.analyzers.experiment import experiment
from deepcontext.profiler.summaries.basis import Part
from deepcontext.profiler.summaries.compiled_kernels import fused_at
from deepcontext.ui.compiled_kernels import lines_text, operators_text
from deepcontext.ui.format import (
    format_bytes,
    format_count,
    format_ns,
    format_share,
    frame_label,
    shorten_path,
)
from deepcontext.ui.labels import metric_label, words

if TYPE_CHECKING:
    from deepcontext.analyzers.finding import Confidence, Finding, Gain
    from deepcontext.profiler.model.profile import Profile

_FRAMES_SHOWN: Final = 4
_OF_PART: Final = {
    Part.RUN: "of the run",
    Part.STEADY: "of a step",
    Part.SETUP: "of set-up",
    Part.CHOSEN: "of these windows",
}
_HOST_MEMORY: Final = "peak_bytes"
# Two shares that differ by less look equal to a reader.
_NEARLY: Final = 0.95


def texts_of(profile: Profile, finding: Finding) -> list[tuple[str, str]]:
    """Return the texts of a finding besides its title: pairs of a name and a text."""
    texts = []
    if finding.nodes:
        frames = profile.path(finding.nodes[0])[1:][-_FRAMES_SHOWN:]
        texts.append(("where", " > ".join(frame_label(frame) for frame in frames)))
        texts.append(("computes", _fused(profile, finding.nodes[:1])))
    evidence = ", ".join(
        _evidence(name, value, profile.run.cwd) for name, value in finding.evidence.items()
    )
    if evidence:
        texts.append(("seen", evidence))
    if finding.gain:
        texts.append(("gain", f"at most {gain_text(finding)}, if {finding.gain.assumption}"))
        texts.append(("expected", _expected_text(finding.gain, finding.confidence)))
    texts += [("do", finding.advice), ("misleads when", finding.misleads)]
    texts.append(("try", experiment(profile, finding.nodes)))
    return [(name, text) for name, text in texts if text]


def gain_text(finding: Finding) -> str:
    """Return a finding's maximum gain: ``12.3 % of host time (4.0 % of a step, 1.20 ms)``."""
    gain = finding.gain
    if gain is None:
        return "-"
    text = f"{format_share(gain.upper_bound_share)} of {metric_label(gain.metric)}"
    share, of = gain.run_share, _OF_PART[finding.part]
    if share is None:
        return text
    if (
        gain.metric == _HOST_MEMORY
    ):  # the process also has what the allocator keeps, libraries and code
        return f"{text} ({format_bytes(gain.upper_bound)}, {format_share(share)} of the process's memory)"
    if finding.steps:
        return f"{text} ({format_share(share)} {of}, {format_ns(gain.upper_bound / finding.steps)})"
    if share >= _NEARLY * gain.upper_bound_share:
        return text if finding.part is Part.RUN else f"{text} {of}"
    return f"{text} ({format_share(share)} {of})"


def _expected_text(gain: Gain, confidence: Confidence) -> str:
    """Return what fixes of the same kind saved: ``3.1 % to 9.0 % (confidence: high)``."""
    if gain.low is None or gain.high is None or not gain.upper_bound:
        return ""
    scale = gain.upper_bound_share / gain.upper_bound
    return (
        f"{format_share(gain.low * scale)} to {format_share(gain.high * scale)} of "
        f"{metric_label(gain.metric)}, as measured fixes saved (confidence: {confidence.value})"
    )


def _fused(profile: Profile, nodes: tuple[int, ...]) -> str:
    """Return the lines and operators that torch.compile fused into a kernel, "" for other nodes."""
    return "; ".join(
        " of ".join(filter(None, (operators_text(each), lines_text(each, profile.run.cwd))))
        for each in fused_at(profile, nodes)
    )


def _evidence(name: str, value: float | str, folder: str) -> str:
    label, _, unit = name.rpartition("_")
    if isinstance(value, str):
        return f"{words(name)} {shorten_path(value, folder)}"
    shown = {
        "ns": format_ns,
        "bytes": format_bytes,
        "share": format_share,
        "count": format_count,
    }.get(unit)
    if shown is None:
        return f"{words(name)} {value:g}"
    return f"{words(label)} {shown(value)}"
