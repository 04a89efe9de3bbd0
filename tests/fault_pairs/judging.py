"""Judge what the analyzers say about the two programs of a pair.

A good finding is at a line of the fault, and its title or advice says what helps. Each other warning is
false: one fault is one finding, and a healthy program has none.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext.analyzers import Finding, Severity, run_analyzers, with_worker_lines
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.ui.cli.inputs import load_one_of
from tests.fault_pairs.pairs import HEALTHY, PROBLEM, Pair

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from deepcontext.profiler.model.profile import Profile

_SLOW: Final = "slow_steps"
# Places and names, which the programs chose after their faults.
_NAMES: Final = re.compile(r"\S+\.py:\d+( \([^)]*\))?|'\w[\w.]*'")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found in the programs of a pair.

    Attributes:
        told: "yes"; "faintly", a good finding less severe than the table says; "elsewhere", what helps is
            said but not at the line; "no"; "" of a program without a fault.
        right: the good finding.
        false: titles of all other warnings, in any of the programs.
        slow: titles of warnings about slow steps. They are true of a run, whatever made its steps slow;
            `tests/analyzers/test_slow_steps.py` has programs whose steps are alike.
    """

    name: str
    told: str
    right: Finding | None
    false: tuple[str, ...]
    slow: tuple[str, ...] = ()


def path_of(folder: Path, name: str, kind: str) -> Path:
    """Return the profile of a program: of all its processes, if it had several."""
    file = folder / f"{name}_{kind}.dcprof"
    run = file.with_suffix(".dcrun")
    return run if run.exists() else file


def verdict(pair: Pair, folder: Path) -> Verdict:
    """Judge the profiles of a pair in a folder."""
    found = {kind: findings(path_of(folder, pair.name, kind)) for kind in pair.kinds}
    told, right = good_finding(pair, *found[PROBLEM]) if pair.advice else ("", None)
    false = [
        f"({kind}) {each.title}"
        for kind, (_, all_found) in found.items()
        for each in all_found
        if each is not right and _is_false(pair, kind, each) and each.id != _SLOW
    ]
    slow = [
        f"({kind}) {each.title}"
        for kind, (_, all_found) in found.items()
        for each in all_found
        if each is not right and each.id == _SLOW and each.severity is not Severity.INFO
    ]
    return Verdict(pair.name, told, right, tuple(false), tuple(slow))


def _is_false(pair: Pair, kind: str, finding: Finding) -> bool:
    if finding.severity is not Severity.INFO:
        return True
    # A fault too small for a warning is still gone in the healthy program.
    return kind == HEALTHY and pair.severity == Severity.INFO and _helps(pair, finding)


def findings(path: Path) -> tuple[Profile, tuple[Finding, ...]]:
    """Return a profile and what `deepcontext analyze` finds in it."""
    profile, others = load_one_of(str(path))
    return profile, with_worker_lines(run_analyzers(profile), profile, lambda: others)


def summary(verdicts: Sequence[Verdict]) -> str:
    """Return recall and precision in a sentence."""
    count, told, false = _counts(verdicts)
    faintly = sum(each.told == "faintly" for each in verdicts)
    return (
        f"{count} faults: told {told} ({recall(verdicts):.0%}), {faintly} more faintly; "
        f"false warnings {false} (precision {precision(verdicts):.0%}), "
        f"of slow steps {sum(len(each.slow) for each in verdicts)}"
    )


def recall(verdicts: Sequence[Verdict]) -> float:
    """Return the share of faults that are told."""
    count, told, _ = _counts(verdicts)
    return told / count


def precision(verdicts: Sequence[Verdict]) -> float:
    """Return the share of good findings in these and the false ones."""
    _, told, false = _counts(verdicts)
    return told / (told + false)


def misses(verdicts: Iterable[Verdict]) -> list[str]:
    """Return a line for each fault that is not told, and for each false finding."""
    lines = []
    for each in verdicts:
        if each.told not in {"yes", ""}:
            lines.append(f"{each.name}: {each.told}")
        lines += [f"{each.name}: false: {title}" for title in each.false]
    return lines


def _counts(verdicts: Sequence[Verdict]) -> tuple[int, int, int]:
    count = sum(bool(each.told) for each in verdicts)
    told = sum(each.told == "yes" for each in verdicts)
    return count, told, sum(len(each.false) for each in verdicts)


def good_finding(
    pair: Pair, profile: Profile, found: Sequence[Finding]
) -> tuple[str, Finding | None]:
    """Return how the fault is told, as `Verdict.told` has it, and the finding that tells it."""
    helps = [each for each in found if _helps(pair, each)]
    there = [each for each in helps if _is_at(pair, profile, each)]
    least = Severity(pair.severity).rank
    loud = [each for each in there if each.severity.rank >= least]
    how = "yes" if loud else "faintly" if there else "elsewhere" if helps else "no"
    return how, next(iter(loud or there or helps), None)


def _is_at(pair: Pair, profile: Profile, finding: Finding) -> bool:
    """Return whether a finding's text or one of its nodes is at a line of the fault, or below it."""
    name, lines = f"{pair.name}_{PROBLEM}.py", pair.lines()
    text = f"{finding.title} {finding.advice} {json.dumps(dict(finding.evidence))}"
    if any(re.search(rf"{re.escape(name)}:{line}\b", text) for line in lines):
        return True
    return any(
        frame.kind is FrameKind.PYTHON and frame.line in lines and Path(frame.file).name == name
        for node in finding.nodes
        for frame in profile.path(node)
    )


def _helps(pair: Pair, finding: Finding) -> bool:
    """Return whether a finding says what helps, in other words than the program's own."""
    words = _NAMES.sub("", f"{finding.title} {finding.advice}")
    return bool(pair.advice) and re.search(pair.advice, words, re.IGNORECASE) is not None
