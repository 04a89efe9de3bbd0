"""The findings of a profile: read from its file if stored, otherwise computed.

Every view gets its findings here, so that all views show the same findings. Does not write:
`deepcontext analyze --save` does.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deepcontext.analyzers.finding import SECTION, Confidence, Finding, Gain, Severity
from deepcontext.errors import QueryError
from deepcontext.profiler.format.metric import RENAMED
from deepcontext.profiler.summaries.basis import Part, basis_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deepcontext.profiler.model.profile import Profile


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings of a profile.

    Attributes:
        found: the findings, largest possible gain first.
        is_stored: whether the findings were read from the file.
    """

    found: tuple[Finding, ...]
    is_stored: bool


def stored_or(profile: Profile, find: Callable[[Profile], Sequence[Finding]]) -> Findings:
    """Return the stored findings of a profile, or the result of `find` if none are stored.

    Stored findings of a run are those of its steady state.

    Raises:
        QueryError: the stored findings cannot be read.
    """
    basis = basis_of(profile)
    run = basis.whole if basis.part is Part.STEADY else profile
    if SECTION in run.sections:
        return Findings(_decoded(run), is_stored=True)
    return Findings(tuple(find(profile)), is_stored=False)


def _decoded(profile: Profile) -> tuple[Finding, ...]:
    """Read the section; rows of third-party analyzers may lack or add fields."""
    try:
        content = json.loads(profile.sections[SECTION])
        rows = content["findings"] if isinstance(content, dict) else content
        return tuple(_finding(row, len(profile.tree)) for row in rows)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise QueryError(
            f"the findings stored in this profile cannot be read: {type(error).__name__}: {error}; "
            "'deepcontext analyze --save' replaces them"
        ) from error


def _finding(row: dict[str, Any], node_count: int) -> Finding:
    severity = row.get("severity", "")
    gain, confidence = row.get("gain"), row.get("confidence", "")
    part = row.get("part", "")
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
        confidence=Confidence(confidence) if confidence in list(Confidence) else Confidence.LOW,
        link=str(row.get("link", "")),
        part=Part(part) if part in list(Part) else Part.RUN,
        steps=int(row.get("steps", 0)),
    )


def _gain(row: dict[str, Any]) -> Gain:
    return Gain(
        metric=RENAMED.get(str(row["metric"]), str(row["metric"])),
        upper_bound=int(row["upper_bound"]),
        upper_bound_share=float(row["upper_bound_share"]),
        assumption=str(row.get("assumption", "")),
        run_share=None if row.get("run_share") is None else float(row["run_share"]),
        low=None if row.get("low") is None else int(row["low"]),
        high=None if row.get("high") is None else int(row["high"]),
    )


def _plain(value: object) -> int | float | str:
    return value if isinstance(value, int | float | str) else json.dumps(value)
