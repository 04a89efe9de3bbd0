"""The output of `deepcontext analyze --verify`, as text and JSON; `analyzers.verification` computes it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from deepcontext.analyzers.verification import ELAPSED, Verdict
from deepcontext.ui.format import format_bytes, format_ns, format_share
from deepcontext.ui.labels import metric_label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.analyzers.finding import Finding
    from deepcontext.analyzers.verification import Saving, Verification
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.ui.report.text_layout import TextLayout

FORMAT: Final = "deepcontext verification"
VERSION: Final = 1
_VERDICTS: Final = {
    Verdict.INSIDE: "as expected",
    Verdict.BELOW: "less than expected",
    Verdict.ABOVE: "more than expected",
    Verdict.UNCERTAIN: "less than expected, but this machine was busy: repeat both runs",
    Verdict.UNKNOWN: "no gain was expected of the findings that are gone",
}


def print_verification(layout: TextLayout, found: Verification) -> None:
    """Print which findings are gone, and what was saved against what was expected."""
    for title, findings in (
        ("Gone", found.gone),
        ("Still there", found.remaining),
        ("New", found.fresh),
    ):
        if findings:
            layout.title(title)
            for finding in findings:
                layout.prose(finding.title, hanging="- ")
    layout.title("Saved")
    for saving in found.savings:
        layout.prose(_text(saving), hanging="- ")
    layout.line()
    layout.line("one run each: repeat both before trusting a small change", "dim")


def verification_to_dict(found: Verification, before: Profile, after: Profile) -> dict[str, object]:
    """Return the comparison in JSON's types; documented in docs/reference/findings-json.md."""

    def rows(findings: Sequence[Finding], profile: Profile) -> list[dict[str, object]]:
        return [each.to_dict(profile) for each in findings]

    return {
        "format": FORMAT,
        "version": VERSION,
        "holds": found.holds,
        "savings": [{**asdict(each), "verdict": each.verdict.value} for each in found.savings],
        "gone": rows(found.gone, before),
        "remaining": rows(found.remaining, before),
        "new": rows(found.fresh, after),
    }


def _text(saving: Saving) -> str:
    is_time = saving.metric == ELAPSED
    form = format_ns if is_time else format_bytes
    name = "time without importing and compiling" if is_time else metric_label(saving.metric)
    text = (
        f"{name} a {saving.per}: {form(saving.before)} before, {form(saving.after)} after: "
        f"{format_share(saving.share)} saved"
    )
    if saving.verdict is Verdict.UNKNOWN:
        return f"{text}; {_VERDICTS[saving.verdict]}"
    return (
        f"{text}; expected {format_share(saving.low)} to {format_share(saving.high)}: "
        f"{_VERDICTS[saving.verdict]}"
    )
