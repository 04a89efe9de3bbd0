"""What visits to machines with a GPU brought home: the files that `tests/gpu/run.sh` wrote to $OUT.

Measures nothing, because the machine that writes docs/benchmarks.md has no GPU. Keep the files of a visit
in a folder below `benchmarks/visits`; each table is marked with its machine and date.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from paired import Table

VISITS = Path(__file__).resolve().parent / "visits"


def tables(visits: Path = VISITS) -> list[Table]:
    return [_table(summary) for summary in sorted(visits.glob("*/summary-*.json"))]


def _table(summary: Path) -> Table:
    content = json.loads(summary.read_text(encoding="utf-8"))
    lines = (
        (summary.parent / f"table-{content['part']}.md").read_text(encoding="utf-8").splitlines()
    )
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    device = content["device_and_driver"] or "no NVIDIA GPU"
    title = f"GPU: {content['part']} on {device}, {content['date']}"
    return Table(title, rows[0], rows[2:], _notes(content))


def _notes(content: dict[str, Any]) -> list[str]:
    packages = ", ".join(
        f"{name} {version}" for name, version in content["packages"].items() if version
    )
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in content["outcomes"].items())
    notes = [
        f"Python {content['python']}, {packages}. Tests: {outcomes}; set-up "
        f"{content['set_up_s']:.0f} s, tests {content['elapsed_s']:.0f} s.",
    ]
    if content["not_reached"]:
        notes.append(f"Not reached: {', '.join(content['not_reached'])}.")
    return notes


if __name__ == "__main__":
    print("\n".join(table.markdown() for table in tables()))
