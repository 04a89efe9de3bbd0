"""Answers with findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.analyzers import known_findings
from deepcontext.ui.finding_texts import gain_text, texts_of
from deepcontext.ui.known_peaks import with_known_peaks
from deepcontext.ui.web.answers import FindingRow, FindingsAnswer, FindingText

if TYPE_CHECKING:
    from deepcontext.analyzers.finding import Finding
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.ui.web.open_profiles import OpenProfiles


def findings(profiles: OpenProfiles, file: int) -> FindingsAnswer:
    """Return the findings of a profile, with the peaks that are known here.

    Raises:
        QueryError: the stored findings cannot be read.
        UserError: a third-party analyzer failed; the message names the analyzer.
    """
    opened = profiles.get(file)
    profile = with_known_peaks(opened.profile, profiles.peaks)
    known = profiles.keep(
        ("findings", opened.version),
        lambda: known_findings(profile, lambda: _processes(profiles, file)),
    )
    return FindingsAnswer(known.is_stored, [_row(profile, each) for each in known.found])


def _processes(profiles: OpenProfiles, file: int) -> list[Profile]:
    """Return the profiles of all processes of the job that a profile is of."""
    jobs = [[row.file for row in job.processes if row.file >= 0] for job in profiles.jobs]
    files = next((each for each in jobs if file in each), [])
    return [profiles.get(each).profile for each in files]


def _row(profile: Profile, finding: Finding) -> FindingRow:
    return FindingRow(
        id=finding.id,
        severity=str(finding.severity),
        title=finding.title,
        gain=gain_text(finding) if finding.gain else "",
        texts=[FindingText(name, text) for name, text in texts_of(profile, finding)],
        nodes=list(finding.nodes),
    )
