"""Measure how many of the blind cases are told, and how many findings are false.

The programs in `blind_cases/` were written by someone who had not read the analyzers. Each is profiled
once with the defaults, and `deepcontext analyze --json` is asked. Nothing is tuned to a case here: the
table says what a good finding must say, and the marker in the program says where. A second warning about
a fault counts as false, because one cause is to be one finding.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.model.profile import Profile

FOLDER = Path(__file__).parent / "blind_cases"
_MARKER = "# the problem"
_LOUD = ("warning", "high")
_COMMAND = (sys.executable, "-m", "deepcontext")
_TIME_LIMIT_S = 600


@dataclass(frozen=True, slots=True)
class Case:
    """One fault: a program that has it, and the same program without it.

    Attributes:
        name: of the programs, NAME_problem.py and NAME_healthy.py.
        says: what a good finding says, in a sentence.
        advice: regular expression that its title or advice matches.
        source: the thread that shows the fault at a user, or "issue list".
        measure: what the fault costs, "time" or "memory".
        ratio: what the fix was measured to save, problem by healthy.
        also: lines besides the marked one that belong to the fault, as offsets.
    """

    name: str
    says: str
    advice: str
    source: str
    measure: str
    ratio: float
    also: tuple[int, ...] = ()

    def program(self, kind: str) -> Path:
        return FOLDER / f"{self.name}_{kind}.py"

    def lines(self) -> set[int]:
        """Return the numbers of the lines that cause the fault."""
        text = self.program("problem").read_text().splitlines()
        (marked,) = [number for number, line in enumerate(text, 1) if line.endswith(_MARKER)]
        return {marked, *(marked + offset for offset in self.also)}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was found in the two programs of a case.

    Attributes:
        told: "yes" if a finding at the fault's line says what helps; "faintly" if only one of severity
            `info` does; "elsewhere" if one says what helps but not at the line; "no" otherwise.
        false: titles of warnings about anything else, in either program.
    """

    name: str
    told: str
    false: tuple[str, ...]


def cases() -> list[Case]:
    table = tomllib.loads((FOLDER / "cases.toml").read_text())
    return [Case(**{**row, "also": tuple(row.get("also", ()))}) for row in table["case"]]


def record(program: Path, folder: Path) -> Path:
    """Profile a program with the defaults; return the profile of its process. Keeps an older one."""
    out = folder / f"{program.stem}.dcprof"
    if out.exists():
        return out
    made = subprocess.run(
        [*_COMMAND, "profile", "--no-report", "-o", str(out), str(program)],
        capture_output=True,
        text=True,
        timeout=_TIME_LIMIT_S,
        check=False,
    )
    if made.returncode:
        out.unlink(missing_ok=True)
        raise RuntimeError(f"{program.name} ended with {made.returncode}:\n{made.stderr[-2000:]}")
    return out


def findings(profile: Path) -> list[dict[str, Any]]:
    """Ask the analyzers about a program: about all its processes, if it had several."""
    run = profile.with_suffix(".dcrun")
    command = [*_COMMAND, "analyze", "--json", str(run if run.exists() else profile)]
    asked = subprocess.run(command, capture_output=True, text=True, check=True)
    found: list[dict[str, Any]] = json.loads(asked.stdout)["findings"]
    return found


def _is_at(finding: dict[str, Any], profile: Profile, program: Path, lines: set[int]) -> bool:
    """Is the finding's text or one of its nodes at one of the lines, or below it?"""
    text = f"{finding['title']} {finding['advice']} {json.dumps(finding['evidence'])}"
    if any(re.search(rf"{re.escape(program.name)}:{line}\b", text) for line in lines):
        return True
    frames = profile.frames
    for node in finding["nodes"]:
        if not 0 <= node < len(profile.tree):
            continue
        for step in profile.tree.path(node):
            frame = frames[int(profile.tree.frame[step])]
            if (
                frame.kind is FrameKind.PYTHON
                and frame.line in lines
                and Path(frame.file).name == program.name
            ):
                return True
    return False


def _words(finding: dict[str, Any]) -> str:
    """Return title and advice without places and names, which the programs chose after their faults."""
    text = f"{finding['title']} {finding['advice']}"
    return re.sub(r"\S+\.py:\d+( \([^)]*\))?|'\w[\w.]*'", "", text)


def telling(case: Case, problem: list[dict[str, Any]], profile: Profile) -> list[dict[str, Any]]:
    """Return the findings at the fault's line that say what helps."""
    program, lines = case.program("problem"), case.lines()
    return [
        one
        for one in problem
        if re.search(case.advice, _words(one), re.IGNORECASE)
        and _is_at(one, profile, program, lines)
    ]


def judge(
    case: Case, problem: list[dict[str, Any]], profile: Profile, healthy: list[dict[str, Any]]
) -> Outcome:
    helps = [one for one in problem if re.search(case.advice, _words(one), re.IGNORECASE)]
    there = telling(case, problem, profile)
    loud = [one for one in there if one["severity"] in _LOUD]
    told = "yes" if loud else "faintly" if there else "elsewhere" if helps else "no"
    # One fault is one finding: a second warning about it counts as false.
    right = (loud or helps)[:1]
    false = [one["title"] for one in problem if one["severity"] in _LOUD and one not in right]
    false += [f"(healthy) {one['title']}" for one in healthy if one["severity"] in _LOUD]
    return Outcome(case.name, told, tuple(false))


def measure(case: Case, folder: Path) -> tuple[Outcome, dict[str, Any]]:
    made = record(case.program("problem"), folder)
    problem, healthy = findings(made), findings(record(case.program("healthy"), folder))
    return judge(case, problem, Profile.load(made), healthy), {
        "problem": problem,
        "healthy": healthy,
    }


def summary(outcomes: list[Outcome]) -> str:
    told = sum(outcome.told == "yes" for outcome in outcomes)
    faintly = sum(outcome.told == "faintly" for outcome in outcomes)
    false = sum(len(outcome.false) for outcome in outcomes)
    precision = told / (told + false) if told + false else 1.0
    return (
        f"{len(outcomes)} cases: told {told} ({told / len(outcomes):.0%}), {faintly} more as info; "
        f"false warnings {false} (precision {precision:.0%})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", action="append", help="name of a case; may be given several times"
    )
    parser.add_argument(
        "--profiles", type=Path, help="folder of profiles: made where missing, kept"
    )
    parser.add_argument(
        "--save", type=Path, metavar="FILE", help="write all findings there, as JSON"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.profiles or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        outcomes, saved = [], {}
        for case in cases():
            if options.only and case.name not in options.only:
                continue
            outcome, saved[case.name] = measure(case, folder)
            outcomes.append(outcome)
            print(f"{case.name:28} {outcome.told:10} {len(outcome.false)} false", flush=True)
            for title in outcome.false:
                print(f"    {title}")
    if options.save:
        options.save.write_text(json.dumps(saved, indent=1))
    print(summary(outcomes))


if __name__ == "__main__":
    main()
