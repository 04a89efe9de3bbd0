"""Answers with findings: those stored in the profile, else what the analyzers find now."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from deepcontext.analyzers import run_analyzers
from deepcontext.analyzers.finding import SECTION, Finding, Gain, Severity
from deepcontext.errors import QueryError
from deepcontext.ui.report.findings import gain_text, texts_of
from deepcontext.ui.web.answers import FindingRow, FindingsAnswer, FindingText

if TYPE_CHECKING:
    from deepcontext.profiler.profile import Profile
    from deepcontext.ui.web.shelf import Shelf


def findings(shelf: Shelf, file: int) -> FindingsAnswer:
    """Return the findings of a profile.

    Raises:
        QueryError: the stored findings cannot be read.
        UserError: an analyzer of a third party failed; the message names it.
    """
    book = shelf.get(file)
    profile = book.profile
    if SECTION in profile.sections:
        return _answer(profile, _stored(profile), stored=True)
    found = shelf.keep(("findings", book.version), lambda: list(run_analyzers(profile)))
    return _answer(profile, found, stored=False)


def _answer(profile: Profile, found: list[Finding], *, stored: bool) -> FindingsAnswer:
    return FindingsAnswer(stored, [_row(profile, each) for each in found])


def _row(profile: Profile, finding: Finding) -> FindingRow:
    return FindingRow(
        id=finding.id,
        severity=str(finding.severity),
        title=finding.title,
        gain=gain_text(finding) if finding.gain else "",
        texts=[FindingText(name, text) for name, text in texts_of(profile, finding)],
        nodes=list(finding.nodes),
    )


def _stored(profile: Profile) -> list[Finding]:
    """Read the section; rows of third parties may lack or add fields."""
    try:
        content = json.loads(profile.sections[SECTION])
        rows = content["findings"] if isinstance(content, dict) else content
        return [_finding(row, len(profile.tree)) for row in rows]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise QueryError(
            f"the findings stored in this profile cannot be read: {type(error).__name__}: {error}; "
            "run 'deepcontext analyze' on it again"
        ) from error


def _finding(row: dict[str, Any], node_count: int) -> Finding:
    severity = row.get("severity", "")
    gain = row.get("gain")
    evidence = row.get("evidence") or {}
    return Finding(
        id=str(row.get("id", "")),
        severity=Severity(severity) if severity in list(Severity) else Severity.INFO,
        title=str(row.get("title", "")),
        nodes=tuple(int(node) for node in row.get("nodes", ()) if 0 <= int(node) < node_count),
        evidence={str(name): _plain(value) for name, value in evidence.items()},
        gain=None if gain is None else _gain(gain),
        advice=str(row.get("advice", "")),
        misleads=str(row.get("misleads", "")),
    )


def _gain(row: dict[str, Any]) -> Gain:
    return Gain(
        metric=str(row["metric"]),
        upper_bound=int(row["upper_bound"]),
        upper_bound_share=float(row["upper_bound_share"]),
        assumption=str(row.get("assumption", "")),
        run_share=None if row.get("run_share") is None else float(row["run_share"]),
    )


def _plain(value: object) -> int | float | str:
    return value if isinstance(value, int | float | str) else json.dumps(value)
