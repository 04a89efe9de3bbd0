"""Time, memory and size of joining the ranks of a large job, and time to report the result."""

from __future__ import annotations

import dataclasses
import io
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from made_job import NODES, write_job
from paired import Table, machine
from rich.console import Console

from deepcontext.profiler.model.job.artifact import profile_of, read_part
from deepcontext.profiler.model.job.part import Part, Paths
from deepcontext.profiler.model.profile import Profile
from deepcontext.ui.report.text import render_report

RANKS = (64, 256, 1024, 4096)
BASES = 1024  # ranks of which the partial results are made
PART_RANKS = 32
PARTS = 313  # 10,016 ranks
ENGINE = "processes:2"


@dataclasses.dataclass
class Run:
    """One run of a command: elapsed and processor time in s, largest memory of all processes."""

    elapsed: float
    processor: float
    memory_mb: float


def run(words: list[str]) -> Run:
    before, begun = os.times(), time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "deepcontext", *words],
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    most = [0.0]
    watcher = threading.Thread(target=_watch, args=(process, most))
    watcher.start()
    status = process.wait()
    elapsed, after = time.perf_counter() - begun, os.times()
    watcher.join()
    assert status == 0
    spent = sum(after[2:4]) - sum(before[2:4])
    return Run(elapsed, spent, most[0])


def _watch(process: subprocess.Popen[bytes], most: list[float]) -> None:
    while process.poll() is None:
        most[0] = max(most[0], sum(map(_resident_mb, _in_session(process.pid))))
        time.sleep(0.1)


def _in_session(session: int) -> list[Path]:
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            fields = (path / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            found.append(path)
    return found


def _resident_mb(process: Path) -> float:
    try:
        return int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except OSError:
        return 0.0


def report_seconds(path: Path) -> float:
    """Return the time to open a profile and print its report, once everything is imported."""
    render_report(Profile.load(path), console=Console(file=io.StringIO(), width=100))
    begun = time.perf_counter()
    render_report(Profile.load(path), console=Console(file=io.StringIO(), width=100))
    return time.perf_counter() - begun


def row(name: str, files: list[Path], output: Path) -> list[str]:
    words = ["merge", "--engine", ENGINE, "-o", str(output), *map(str, files)]
    done = run(words)
    nodes = len(Profile.load(output).tree)
    return [
        name,
        f"{done.elapsed:.1f} s",
        f"{done.processor:.1f} s",
        f"{done.memory_mb:.0f} MB",
        f"{output.stat().st_size / 1e6:.1f} MB",
        f"{nodes:,}",
        f"{report_seconds(output):.2f} s",
    ]


def other_ranks(part: Part, number: int, shift: int) -> Part:
    """Return a part as of other ranks: their numbers are shifted, and paths of one rank are others."""
    random = np.random.default_rng(number)
    own = np.flatnonzero(part.paths.seen == 1)
    key = part.paths.key.copy()
    key[own] = random.integers(1, 2**63, len(own)).astype(np.uint64)
    order = np.argsort(key)
    position = np.argsort(order)
    columns = part.columns
    moved = key[np.searchsorted(part.paths.key, columns.key)]
    by_key = np.argsort(moved)
    return dataclasses.replace(
        part,
        paths=Paths(
            key[order],
            part.paths.parent[order],
            part.paths.frame[order],
            part.paths.phase[order],
            part.paths.seen[order],
        ),
        sums={
            name: _by_node(dataclasses.replace(rows, node=position[rows.node].astype(np.uint32)))
            for name, rows in part.sums.items()
        },
        spreads={
            name: dataclasses.replace(
                moved_spread,
                least_rank=moved_spread.least_rank + np.int32(shift),
                most_rank=moved_spread.most_rank + np.int32(shift),
            )
            for name, moved_spread in (
                (name, spread.at(position)) for name, spread in part.spreads.items()
            )
        },
        columns=dataclasses.replace(
            columns,
            key=moved[by_key],
            rank=columns.rank + np.int32(shift),
            codes={name: codes[by_key] for name, codes in columns.codes.items()},
        ),
        rows=tuple(
            dataclasses.replace(each, rank=each.rank + shift, of=PARTS * PART_RANKS, content="")
            for each in part.rows
        ),
    )


def _by_node(rows):
    order = np.argsort(rows.node)
    return dataclasses.replace(
        rows, node=rows.node[order], count=rows.count[order], total=rows.total[order]
    )


def write_parts(files: list[Path], folder: Path) -> list[Path]:
    """Write the partial results of 10,016 ranks, made of those of the files."""
    folder.mkdir()
    bases = []
    for start in range(0, len(files), PART_RANKS):
        path = folder / f"base{start:05}.dcprof"
        names = map(str, files[start : start + PART_RANKS])
        run(["merge", "--engine", "processes:1", "-o", str(path), *names])
        bases.append(path)
    found = []
    for number in range(PARTS):
        base = number % len(bases)
        part = read_part(Profile.load(bases[base]))
        shift = PART_RANKS * number - part.rows[0].rank
        path = folder / f"part{number:03}.dcprof"
        profile_of(other_ranks(part, number, shift)).save(path)
        found.append(path)
    return found


def table(folder: Path | None = None) -> Table:
    with tempfile.TemporaryDirectory() as scratch:
        made = folder or Path(scratch) / "job"
        write_job(max(RANKS), made)
        every, output = sorted(made.glob("*.dcprof")), Path(scratch) / "job.dcprof"
        rows = [row(f"{ranks:,} ranks", every[:: max(RANKS) // ranks], output) for ranks in RANKS]
        # Ranks of one part are neighbours, so that the parts are made of a job of their own.
        bases = Path(scratch) / "bases"
        write_job(BASES, bases)
        parts = write_parts(sorted(bases.glob("*.dcprof")), Path(scratch) / "parts")
        name = f"{PARTS * PART_RANKS:,} ranks from {PARTS} results"
        rows.append(row(name, parts, output))
    note = (
        f"Made-up ranks of about {NODES:,} nodes and five metrics each, four groups with paths of their "
        f"own, 40 paths that only one rank has; `deepcontext merge --engine {ENGINE}`, memory of all "
        "its processes. Report: open and print, without starting Python. Design: 1,024 ranks within "
        "60 s, 1 GiB and 20 MB, reported within 1 s; 10,000 ranks from partial results within 30 s. "
        f"{machine()}."
    )
    columns = ["", "elapsed", "processor", "memory", "file", "nodes", "report"]
    return Table("Joining the ranks of a job", columns, rows, [note])


if __name__ == "__main__":
    print(table(Path(sys.argv[1]) if len(sys.argv) > 1 else None).markdown())
