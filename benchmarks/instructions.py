"""Instructions and cache misses an event: figures that no neighbour on the machine can change.

Runs `counted_program.py` under callgrind, which counts every instruction of the process, PyTorch's
included. Needs valgrind (Debian's package of that name).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from paired import Table, machine

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = Path(__file__).with_name("counted_program.py")


class Counts(NamedTuple):
    """What callgrind counted in one part of the program."""

    instructions: int
    misses: int  # of the simulated first-level data cache
    code_misses: int  # of that for instructions

    @classmethod
    def read(cls, file: Path) -> Counts:
        """Read the totals of one of callgrind's files. ValueError where it has none."""
        names: list[str] = []
        for line in file.read_text(encoding="utf-8").splitlines():
            key, _, values = line.partition(":")
            if key == "events":
                names = values.split()
            elif key in {"summary", "totals"}:
                counted = dict(zip(names, map(int, values.split()), strict=False))
                data_misses = counted.get("D1mr", 0) + counted.get("D1mw", 0)
                return cls(counted["Ir"], data_misses, counted.get("I1mr", 0))
        raise ValueError(f"'{file.name}': expected a line 'summary' of callgrind, found none")


def count(folder: Path) -> Iterator[tuple[tuple[str, str, int], Counts]]:
    """Run the program; yield program, mode and events of each part, and what was counted."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise SystemExit("this benchmark needs valgrind: apt-get install valgrind")
    output = subprocess.run(
        [
            valgrind,
            "--tool=callgrind",
            "--quiet",
            "--cache-sim=yes",
            "--dump-before=getpgrp",
            f"--callgrind-out-file={folder / 'counted'}",
            sys.executable,
            str(PROGRAM),
        ],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"},
    ).stdout
    for part, row in enumerate(json.loads(output.splitlines()[-1])):
        yield tuple(row), Counts.read(folder / f"counted.{2 * part + 2}")


def table() -> Table:
    with tempfile.TemporaryDirectory() as folder:
        found = list(count(Path(folder)))
    base = {(program, mode): counts for (program, mode, _), counts in found}
    rows = []
    for (program, mode, events), counts in found:
        if mode == "off":
            continue
        off = base[program, "off"]
        floor, empty = (
            base[program, name].instructions - off.instructions
            for name in ("outside a recording", "empty observer")
        )
        extra = counts.instructions - off.instructions
        rows.append([
            program,
            mode,
            str(events),
            f"{extra / events:.0f}",
            f"{extra / floor:.2f}",
            f"{extra / empty:.2f}",
            f"{(counts.misses - off.misses) / events:.1f}",
            f"{(counts.code_misses - off.code_misses) / events:.1f}",
        ])
    return Table(
        "Instructions an event",
        [
            "program",
            "observer",
            "events",
            "instructions added",
            "of one outside a recording",
            "of an empty observer",
            "data misses added",
            "code misses added",
        ],
        rows,
        [
            "All instructions of the process, PyTorch's included, as callgrind counts them, less those "
            "of the program unobserved, for each operator or scope that PyTorch shows to an observer; "
            "second run of each program, so that no call path is new; without what leaving an observer "
            "costs, and without CPU samples and windows of element types, which go by the clock. Misses: of "
            "the caches of the first level, simulated. *Outside a recording* is deepcontext's own observer "
            "while nothing is recorded; the empty observer is PyTorch's, which asks for the inputs of "
            "operators. "
            f"torch {torch.__version__}. {machine()}.",
        ],
    )


if __name__ == "__main__":
    print(table().markdown())
