"""The pairs: programs with a fault, their fixes as diffs, and what a good finding says.

`programs/NAME.py` has the fault, and its marked line ends in "# the problem"; `NAME.diff` is the fix.
The healthy program is NAME.py without the mark and with the fix, so that nothing else can differ.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
PROGRAMS: Final = HERE / "programs"
PROBLEM, HEALTHY = "problem", "healthy"
MARK: Final = "  # the problem"
_HUNK: Final = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")


@dataclass(frozen=True, slots=True)
class Pair:
    """One fault, or a healthy program without `advice`; `pairs.toml` says what the fields mean."""

    name: str
    question: str = ""
    says: str = ""
    advice: str = ""
    source: str = ""
    measure: str = ""
    ratio: float = 0.0
    also: tuple[int, ...] = ()
    severity: str = "warning"
    options: tuple[str, ...] = ()
    needs: str = ""
    stored: bool = False
    lost: str = ""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Which programs there are."""
        return (PROBLEM, HEALTHY) if self.advice else (HEALTHY,)

    def text(self, kind: str) -> str:
        """Return the source of a program."""
        text = (PROGRAMS / f"{self.name}.py").read_text(encoding="utf-8")
        if kind == PROBLEM or not self.advice:
            return text
        return patched(text.replace(MARK, ""), (PROGRAMS / f"{self.name}.diff").read_text("utf-8"))

    def lines(self) -> set[int]:
        """Return the numbers of the lines that cause the fault."""
        text = self.text(PROBLEM).splitlines()
        (marked,) = [number for number, line in enumerate(text, 1) if line.endswith(MARK)]
        return {marked, *(marked + offset for offset in self.also)}


def pairs() -> dict[str, Pair]:
    """Return all pairs by name."""
    table = tomllib.loads((HERE / "pairs.toml").read_text(encoding="utf-8"))
    return {row["name"]: pair_of(row) for row in table["pair"]}


def pair_of(row: dict[str, Any]) -> Pair:
    """Return the pair of a row of the table.

    Raises:
        TypeError: a column is unknown.
    """
    columns: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in row.items()
    }
    return Pair(**columns)


def patched(text: str, diff: str) -> str:
    """Apply a unified diff; what stands before its first hunk says nothing.

    Raises:
        ValueError: the diff was made for another text.
    """
    old, new, position = text.splitlines(), [], 0
    hunks = dropwhile(lambda line: not line.startswith("@@"), diff.splitlines())
    for line in hunks:
        if hunk := _HUNK.match(line):
            # Without lines of the old text, the number is that of the line before.
            begin = int(hunk[1]) - (hunk[2] != "0")
            new += old[position:begin]
            position = begin
            continue
        if line[0] != "+":
            if position >= len(old) or old[position] != line[1:]:
                raise ValueError(f"line {position + 1} is not '{line[1:]}'")
            position += 1
        if line[0] != "-":
            new.append(line[1:])
    return "\n".join([*new, *old[position:]]) + "\n"
