"""Instructions and cache misses an event: figures that no neighbour on the machine can change.

Runs this file once more under callgrind (Debian's package valgrind), which counts every instruction
of the process, PyTorch's included. Each call of `getppid` ends one measured part.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from paired import Table, machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MODES = (
    "empty observer",
    "deepcontext operators only",
    "deepcontext with memory",
    "torch.profiler",
    "torch.profiler with_stack",
)
ADDITIONS = 400
STEPS = 12


class Counts(NamedTuple):
    """What callgrind counted in one part of the program."""

    instructions: int
    misses: int  # of the simulated first-level data cache, 32 KiB

    @classmethod
    def read(cls, dump: Path) -> Counts:
        """Read the totals of one of callgrind's files. ValueError where it has none."""
        names: list[str] = []
        for line in dump.read_text(encoding="utf-8").splitlines():
            key, _, rest = line.partition(":")
            if key == "events":
                names = rest.split()
            elif key == "summary":
                counted = dict(zip(names, map(int, rest.split()), strict=False))
                return cls(counted["Ir"], counted.get("D1mr", 0) + counted.get("D1mw", 0))
        raise ValueError(f"{dump.name}: no line 'summary' in this file of callgrind")


class Part(NamedTuple):
    """One workload under one observer; `events` is what the observer saw."""

    workload: str
    mode: str
    events: int


# -- the measured program


def workloads() -> dict[str, Callable[[], None]]:
    """Each a loop of PyTorch operators, by name."""
    import torch
    from operator_event import at_depth, loop

    left = torch.ones(8, requires_grad=True)
    right = torch.ones(8)

    def additions(depth: int) -> Callable[[], None]:
        return lambda: (at_depth(depth, lambda: loop(left, right, ADDITIONS)), None)[1]

    def lines() -> None:
        for _ in range(ADDITIONS // 8):
            total = left * right + right
            total = total - right * left
            total = total.relu() + total.neg()
            total = total.view(2, 4).sum() + right.sum()

    torch.manual_seed(0)
    model = torch.nn.Sequential(
        *(
            layer
            for _ in range(4)
            for layer in (torch.nn.Linear(16, 16), torch.nn.LayerNorm(16), torch.nn.GELU())
        )
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)
    batch = torch.ones(4, 16)

    def steps() -> None:
        for _ in range(STEPS):
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()

    return {
        "one line, depth 11": additions(3),
        "one line, depth 41": additions(33),
        "one line, depth 100": additions(92),
        "four lines of two to four operators": lambda: (
            at_depth(3, lambda: (lines(), 0.0)[1]) and None
        ),
        "training step": steps,
    }


def observers() -> dict[str, Callable[[], contextlib.AbstractContextManager[object]]]:
    from observers import OBSERVERS, deepcontext_session

    return {
        **{name: OBSERVERS[name] for name in ("off", *MODES) if name in OBSERVERS},
        "deepcontext with memory": lambda: deepcontext_session(memory=True, cpu_rate=0),
    }


def count_events(run: Callable[[], None]) -> int:
    """How many operators and scopes PyTorch shows to an observer while `run` runs."""
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        run()
    return sum(event.device_type.name == "CPU" for event in profiler.events())


@contextlib.contextmanager
def measured() -> Iterator[None]:
    """Make a part of the program a file of callgrind's: its second, the first is what came before."""
    gc.collect()
    gc.disable()
    os.getppid()
    yield
    os.getppid()
    gc.enable()


def program() -> None:
    """Run each workload under each observer, and print the parts in their order."""
    import torch
    from paired import quiet_descriptors

    torch.set_num_threads(1)
    parts = []
    for workload, run in workloads().items():
        with quiet_descriptors():
            events = count_events(run)
            for mode, observer in observers().items():
                with observer():
                    run()
                    with measured():
                        run()
                parts.append(Part(workload, mode, events))
    print(json.dumps(parts))


# -- the measurement


def count(folder: Path) -> Iterator[tuple[Part, Counts]]:
    """Run the program under callgrind; yield what it counted in each part."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise SystemExit("benchmarks/instructions.py needs valgrind: apt-get install valgrind")
    command = [
        valgrind,
        "--tool=callgrind",
        "--cache-sim=yes",
        "--dump-before=getppid",
        "--quiet",
        f"--callgrind-out-file={folder / 'counted'}",
        sys.executable,
        str(Path(__file__).resolve()),
        "--program",
    ]
    environment = {**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    output = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, env=environment
    ).stdout
    for number, fields in enumerate(json.loads(output.splitlines()[-1])):
        yield Part(*fields), Counts.read(folder / f"counted.{2 * number + 2}")


def table() -> Table:
    with tempfile.TemporaryDirectory() as folder:
        found = {(part.workload, part.mode): (part, counts) for part, counts in count(Path(folder))}
    rows = []
    for (workload, mode), (part, counts) in found.items():
        if mode == "off":
            continue
        off = found[workload, "off"][1]
        empty = found[workload, "empty observer"][1].instructions - off.instructions
        extra = counts.instructions - off.instructions
        rows.append([
            workload,
            mode,
            str(part.events),
            f"{extra / part.events:.0f}",
            f"{extra / empty:.2f}",
            f"{(counts.misses - off.misses) / part.events:.1f}",
        ])
    import torch  # noqa: F401  - for its version

    return Table(
        "Instructions an event",
        [
            "program",
            "observer",
            "events",
            "instructions added",
            "of an empty observer",
            "misses added",
        ],
        rows,
        [
            "All instructions of the process, as callgrind counts them, less those of the program "
            "without an observer, for each operator or scope that PyTorch shows to an observer; second "
            "run of each program, so that no call path is new. Misses: of a simulated data cache of "
            "32 KiB. Without CPU samples, which go by the clock. "
            f"{machine()}.",
        ],
    )


if __name__ == "__main__":
    if sys.argv[1:] == ["--program"]:
        program()
    else:
        print(table().markdown())
