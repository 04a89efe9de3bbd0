"""What a user waits for: `--help`, the start of a profiled program, the report of a large profile.

Modules are compiled before the measured runs, as pip compiles them when it installs a package; where
Python may not write bytecode (PYTHONDONTWRITEBYTECODE), it would compile a source tree at every start.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from paired import Table, added, interleave, machine, ratio

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.synthetic import random_profile

ROUNDS = 15
NODES = 1_000_000
PYTHON = (sys.executable,)
DEEPCONTEXT = (sys.executable, "-m", "deepcontext")
PROGRAMS = {
    "an empty script": "",
    "a script that imports NumPy": "import numpy",
    "a script that imports PyTorch": "import torch",
}

_WITH_PEAK = """
import atexit, re, runpy, sys

def tell():
    print(re.search("VmHWM.*", open("/proc/self/status").read())[0], file=sys.stderr)

atexit.register(tell)
runpy.run_module("deepcontext", run_name="__main__", alter_sys=True)
"""


def elapsed_ms(command: Sequence[str], folder: Path) -> float:
    environment = _environment(folder)
    begun = time.perf_counter_ns()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, env=environment)
    return (time.perf_counter_ns() - begun) / 1e6


def _environment(folder: Path) -> dict[str, str]:
    """Return the environment of a user, where compiled modules are kept; here in `folder`."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(folder / "compiled")}


def peak_mib(words: Sequence[str], folder: Path) -> float:
    """Return the largest resident set of a `deepcontext` command, MiB.

    The command reads its own, because what the system tells a parent includes the parent's.
    """
    command = (*PYTHON, "-c", _WITH_PEAK, *words)
    done = subprocess.run(
        command,
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=_environment(folder),
    )
    return int(done.stderr.split()[-2]) / 1024


def start_table(folder: Path, rounds: int) -> Table:
    rows = []
    for label, source in PROGRAMS.items():
        (folder / "program.py").write_text(source, encoding="utf-8")
        profile = (*DEEPCONTEXT, "profile", "-q", "-o", "program.dcprof", "program.py")
        modes: dict[str, Callable[[], float]] = {
            "off": lambda: elapsed_ms((*PYTHON, "program.py"), folder),
            "off, again": lambda: elapsed_ms((*PYTHON, "program.py"), folder),
            "profiled": lambda profile=profile: elapsed_ms(profile, folder),
        }
        figures = interleave(modes, rounds)
        rows.append([
            label,
            f"{statistics.median(figures['off']):.0f} ms",
            f"{added(figures, 'off, again'):+.0f} ms",
            f"{added(figures, 'profiled'):+.0f} ms",
            f"{ratio(figures, 'profiled'):.2f}x",
        ])
    return Table(
        "Start and end of a profiled program",
        ["program", "`python`", "`python`, again", "`deepcontext profile -q` adds", "ratio"],
        rows,
        [
            f"Elapsed time from the command to its end, {rounds} interleaved rounds, medians within a "
            "round. The addition is the same for every program: the command's own start, the import of "
            "the collectors into the program, and writing the profile. Modules are compiled before, as pip "
            f"does when it installs. Bar: 1.15x. {machine()}.",
        ],
    )


def command_table(folder: Path, rounds: int) -> Table:
    random_profile(NODES).save(folder / "large.dcprof")
    rows = []
    for label, words, bar in (
        ("`deepcontext --help`", ("--help",), "80 ms"),
        (f"`deepcontext report`, {NODES:,} nodes", ("report", "large.dcprof"), "1500 ms, 1024 MiB"),
        (f"`deepcontext analyze`, {NODES:,} nodes", ("analyze", "large.dcprof"), "1024 MiB"),
    ):
        command = (*DEEPCONTEXT, *words)
        elapsed_ms(command, folder)  # compiles the modules
        times = [elapsed_ms(command, folder) for _ in range(rounds)]
        lower, middle, upper = statistics.quantiles(times, n=4)
        rows.append([
            label,
            f"{middle:.0f} ms",
            f"{lower:.0f} to {upper:.0f}",
            f"{peak_mib(words, folder):.0f} MiB",
            bar,
        ])
    return Table(
        "Commands",
        ["command", "elapsed", "middle half of the rounds", "memory", "bar"],
        rows,
        [
            f"{rounds} runs each, with the start of Python and compiled modules; peak of the resident set. "
            f"{machine()}."
        ],
    )


def tables(rounds: int = ROUNDS) -> list[Table]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return [start_table(folder, rounds), command_table(folder, max(rounds // 3, 5))]


if __name__ == "__main__":
    print("\n".join(each.markdown() for each in tables()))
