"""The analyzers' findings, as text for a terminal and as Markdown for a pull request.

Does not analyze (`deepcontext.analyzers`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from deepcontext.analyzers import known_findings
from deepcontext.analyzers.finding import Severity
from deepcontext.errors import UserError
from deepcontext.profiler.summaries.basis import basis_of
from deepcontext.profiler.summaries.measures import default_metric
from deepcontext.ui.finding_texts import gain_text, texts_of
from deepcontext.ui.report import account
from deepcontext.ui.sections.view import View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.analyzers.finding import Finding
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.ui.report.text_layout import TextLayout

# Lines that are named where nothing is found.
_PLACES: Final = 3
_STYLES = {Severity.HIGH: "red", Severity.WARNING: "yellow", Severity.INFO: "dim"}


def print_summary(layout: TextLayout, view: View) -> None:
    """Print the titles of a profile's findings, one line each; nothing without findings."""
    try:
        findings = known_findings(view.profile, lambda: view.processes).found
    except UserError as error:  # a failed third-party analyzer must not prevent the report
        layout.title("Findings")
        layout.prose(f"unknown: {error}", "yellow")
        return
    if not findings:
        return
    layout.title("Findings", "what to change; 'deepcontext analyze' explains why and how")
    for finding in findings:
        gain = f"up to {gain_text(finding)}" if finding.gain else "gain unknown"
        layout.prose(f"{gain}: {finding.title}", _STYLES[finding.severity], hanging="- ")


def print_findings(layout: TextLayout, profile: Profile, findings: Sequence[Finding]) -> None:
    """Print the findings in full; without any, where the time goes."""
    if not findings:
        layout.line("nothing found: no analyzer knows what to change in this profile")
        profile = basis_of(profile).profile
        view = View(profile, default_metric(profile), _PLACES)
        account.print_verdicts(layout, view)
        account.print_places(layout, view)
        layout.prose("'deepcontext explain' shows what runs at these lines", "dim", indent="")
    for finding in findings:
        layout.line()
        style = _STYLES[finding.severity]
        layout.line(Text.assemble((layout.clean(finding.severity.value), style), f"  {finding.id}"))
        layout.prose(finding.title, "bold")
        for name, text in texts_of(profile, finding):
            layout.prose(text, hanging=f"{name:<14}")


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


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", r"\*").replace("_", r"\_")
