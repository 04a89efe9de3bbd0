"""What the analyzers found, as text for a terminal and as Markdown for a pull request.

Does not analyze (`deepcontext.analyzers`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from deepcontext.analyzers import known_findings
from deepcontext.analyzers.finding import Severity
from deepcontext.errors import UserError
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
    from collections.abc import Sequence

    from deepcontext.analyzers.finding import Finding
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.ui.report.page import Page

_STYLES = {Severity.HIGH: "red", Severity.WARNING: "yellow", Severity.INFO: "dim"}
_FRAMES_SHOWN = 4
# Two shares that differ by less are one to a reader.
_NEARLY = 0.95


def print_summary(page: Page, profile: Profile) -> None:
    """Print the titles of a profile's findings, a line each; nothing where nothing was found."""
    try:
        findings = known_findings(profile).found
    except UserError as error:  # an analyzer of another package must not cost the report
        page.title("Findings")
        page.prose(f"not known: {error}", "yellow")
        return
    if not findings:
        return
    page.title("Findings", "what to change; 'deepcontext analyze' says why and how")
    for finding in findings:
        gain = f"up to {gain_text(finding)}" if finding.gain else "gain not known"
        page.prose(f"{gain}: {finding.title}", _STYLES[finding.severity], hanging="- ")


def print_findings(page: Page, profile: Profile, findings: Sequence[Finding]) -> None:
    """Print the findings in full."""
    if not findings:
        page.line("nothing found: no analyzer knows what to change in this profile")
    for finding in findings:
        page.line()
        style = _STYLES[finding.severity]
        page.line(Text.assemble((page.clean(finding.severity.value), style), f"  {finding.id}"))
        page.prose(finding.title, "bold")
        for name, text in texts_of(profile, finding):
            page.prose(text, hanging=f"{name:<14}")


def to_markdown(profile: Profile, findings: Sequence[Finding]) -> str:
    """Return the findings as Markdown, for a comment on a pull request."""
    lines = [f"## deepcontext: {len(findings)} finding{'s' * (len(findings) != 1)}", ""]
    if not findings:
        lines.append("No analyzer knows what to change in this profile.")
    for finding in findings:
        lines += [f"### {_escaped(finding.title)}", ""]
        lines.append(f"- **severity** {finding.severity.value} (`{finding.id}`)")
        lines += [f"- **{name}** {_escaped(text)}" for name, text in texts_of(profile, finding)]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def texts_of(profile: Profile, finding: Finding) -> list[tuple[str, str]]:
    """Return what a finding says besides its title: pairs of a name and a text."""
    texts = []
    if finding.nodes:
        frames = profile.path(finding.nodes[0])[1:][-_FRAMES_SHOWN:]
        texts.append(("where", " > ".join(frame_label(frame) for frame in frames)))
    evidence = ", ".join(
        _evidence(name, value, profile.run.cwd) for name, value in finding.evidence.items()
    )
    if evidence:
        texts.append(("seen", evidence))
    if finding.gain:
        texts.append(("gain", f"at most {gain_text(finding)}, if {finding.gain.assumption}"))
    texts += [("do", finding.advice), ("misleads when", finding.misleads)]
    return [(name, text) for name, text in texts if text]


def gain_text(finding: Finding) -> str:
    """Return what a finding promises at most: ``12.3 % of host time (4.0 % of the run)``."""
    if finding.gain is None:
        return "-"
    metric = metric_label(finding.gain.metric)
    text = f"{format_share(finding.gain.upper_bound_share)} of {metric}"
    share = finding.gain.run_share
    if share is None or share >= _NEARLY * finding.gain.upper_bound_share:
        return text
    return f"{text} ({format_share(share)} of the run)"


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


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", r"\*").replace("_", r"\_")
