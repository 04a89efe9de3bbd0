"""What an analyzer is, how third-party analyzers are found, and how analyzers are run.

Does not know the built-in analyzers (`deepcontext.analyzers.ALL`). Invariant: a fault in a
third-party analyzer is an error that names the analyzer, never a silently lost report.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from deepcontext.analyzers.finding import Severity
from deepcontext.analyzers.judgement import doubted, judged
from deepcontext.analyzers.weight import weighing
from deepcontext.errors import DeepContextError, UserError
from deepcontext.profiler.summaries.basis import basis_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from deepcontext.analyzers.finding import Finding
    from deepcontext.profiler.model.profile import Profile

ENTRY_POINTS: Final = "deepcontext.analyzers"


@dataclass(frozen=True, slots=True)
class Analyzer:
    """One question about a profile.

    Attributes:
        id: lower-case words joined by "_"; findings carry this id.
        question: the question, one line.
        find: pure function that answers the question.
        names_place_only: the analyzer says where time goes, not what is wrong there; its findings
            are dropped if another analyzer that ran has a finding on the same call path, or if
            their share of the run makes them "info".
    """

    id: str
    question: str
    find: Callable[[Profile], Iterable[Finding]]
    names_place_only: bool = False


def run(
    profile: Profile, analyzers: Sequence[Analyzer], *, min_gain: float = 0.0
) -> tuple[Finding, ...]:
    """Run analyzers and return their findings, largest possible gain first.

    Args:
        profile: the profile.
        analyzers: analyzers to run.
        min_gain: leave out findings whose maximum gain is below this share of the profile (0 to 1); findings
            without a bound are kept.

    Raises:
        UserError: an analyzer failed; the message names the analyzer.
    """
    found = _weighed(profile, analyzers)
    places_only = {analyzer.id for analyzer in analyzers if analyzer.names_place_only}
    reasons = [each for each in found if each.id not in places_only]
    kept = [
        each
        for each in found
        if not (each.id in places_only and _is_explained(profile, each, reasons))
    ]
    return tuple(sorted(promising(kept, min_gain), key=lambda finding: finding.order))


def promising(findings: Iterable[Finding], min_gain: float) -> tuple[Finding, ...]:
    """Drop findings whose maximum gain is below `min_gain`, a share of the profile (0 to 1).

    Findings without a bound are kept.
    """
    return tuple(
        each for each in findings if each.gain is None or each.gain.upper_bound_share >= min_gain
    )


def _weighed(profile: Profile, analyzers: Sequence[Analyzer]) -> list[Finding]:
    """Return all findings, weighed, without bare locations that are a tiny part of the run."""
    weigh = weighing(profile)
    found = []
    for analyzer in analyzers:
        for finding in _findings(analyzer, basis_of(profile).profile):
            weighed = weigh(finding)
            is_little = weighed.severity is Severity.INFO is not finding.severity
            if not (analyzer.names_place_only and is_little):
                found.append(doubted(judged(weighed), profile))
    return found


def _is_explained(profile: Profile, finding: Finding, reasons: Sequence[Finding]) -> bool:
    """Return whether a finding's costliest node is above or below a node of another finding."""
    end = profile.tree.subtree_end
    return any(
        low <= high < int(end[low])
        for reason in reasons
        for node in reason.nodes
        for low, high in [sorted((node, finding.nodes[0]))]
    )


def select(analyzers: Sequence[Analyzer], only: Sequence[str]) -> tuple[Analyzer, ...]:
    """Return the analyzers whose ids are in `only`, or all analyzers when `only` is empty.

    Raises:
        UserError: `only` names an unknown analyzer.
    """
    known = [analyzer.id for analyzer in analyzers]
    for name in only:
        if name not in known:
            raise UserError(f"unknown analyzer '{name}'; known: {', '.join(sorted(known))}")
    return tuple(each for each in analyzers if not only or each.id in only)


def installed() -> tuple[Analyzer, ...]:
    """Return the analyzers that installed packages register as entry points.

    Raises:
        UserError: an entry point cannot be loaded, or is not an analyzer.
    """
    found: list[Analyzer] = []
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        try:
            loaded = entry.load()
        except Exception as error:
            raise UserError(
                f"cannot load analyzer '{entry.name}' of '{entry.value}': "
                f"{type(error).__name__}: {error}; repair or uninstall the package"
            ) from error
        found += _checked([loaded], f"entry point '{entry.name}'")
    return tuple(found)


def load_plugin(path: Path) -> tuple[Analyzer, ...]:
    """Return the analyzers of a Python file: its list `ANALYZERS`, or its single `ANALYZER`.

    Raises:
        UserError: the file does not exist, fails, or has neither name.
    """
    # A path without the suffix of Python source has no loader, whatever the file contains.
    spec = importlib.util.spec_from_file_location(f"deepcontext_plugin_{path.stem}", path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise UserError(f"cannot read plug-in '{path}': expected a Python file (*.py)")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UserError(f"plug-in '{path}' failed: {type(error).__name__}: {error}") from error
    named = getattr(module, "ANALYZERS", None) or [getattr(module, "ANALYZER", None)]
    return _checked(named, f"plug-in '{path}'")


def _checked(values: Iterable[Any], where: str) -> tuple[Analyzer, ...]:
    found = tuple(values)
    for value in found:
        if not isinstance(value, Analyzer):
            raise UserError(
                f"{where}: expected an Analyzer (deepcontext.analyzers.Analyzer) named ANALYZER, "
                f"or a list of them named ANALYZERS, found {type(value).__name__}"
            )
    return found


def _findings(analyzer: Analyzer, profile: Profile) -> list[Finding]:
    try:
        return list(analyzer.find(profile))
    except DeepContextError:
        raise
    except Exception as error:
        raise UserError(
            f"analyzer '{analyzer.id}' failed: {type(error).__name__}: {error}; "
            "leave it out with --only, and report the error to its author"
        ) from error
