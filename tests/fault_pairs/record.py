"""Profile the programs of pairs, each in its own process, one after the other.

usage: python -m tests.fault_pairs.record FOLDER [NAME...]

Writes NAME_problem.py, NAME_healthy.py and their profiles into FOLDER, and keeps what is there already;
without names, those of all pairs. Prints what was found in each pair, and recall and precision.
"""

from __future__ import annotations

import argparse
import functools
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from deepcontext.profiler.format import run_directory
from deepcontext.profiler.model.job.fold import merge
from deepcontext.profiler.model.profile import Profile
from tests.fault_pairs.judging import Verdict, summary, verdict
from tests.fault_pairs.pairs import HERE, Pair, pairs

if TYPE_CHECKING:
    from collections.abc import Sequence

_TIME_LIMIT_S = 600
_DEEPCONTEXT = (sys.executable, "-m", "deepcontext")
_JOB = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
_VENDORS = ("nvidia", "amd")


def record(pair: Pair, kind: str, folder: Path) -> Path:
    """Profile a program; return its profile, which is an older one where there is one.

    Raises:
        RuntimeError: the program failed; the message has the end of what it said.
    """
    output = folder / f"{pair.name}_{kind}.dcprof"
    if output.exists():
        return output
    program = output.with_suffix(".py")
    program.write_text(pair.text(kind), encoding="utf-8")
    if pair.needs in _VENDORS:
        simulated = [sys.executable, str(HERE / "simulated.py"), pair.needs]
        _run([*simulated, *pair.options, str(program)], folder)
    elif pair.needs == "ranks":
        run = output.with_suffix(".ranks.dcrun")
        _run([*_JOB, *_DEEPCONTEXT[1:], "profile", "-q", "-o", str(run), str(program)], folder)
        files = run_directory.profiles(run)
        merge({file.name: Profile.load(file) for file in files}).save(output)
    else:
        cache = _peaks(folder) if pair.needs == "peaks" else "cache"
        words = ["profile", "--no-report", *pair.options, "-o", str(output), str(program)]
        _run([*_DEEPCONTEXT, *words], folder, cache)
    return output


@functools.cache
def _peaks(folder: Path) -> str:
    """Measure the peaks of this machine; return the cache folder that has them, below the folder."""
    _run([*_DEEPCONTEXT, "doctor", "--measure"], folder, "peaks")
    return "peaks"


def _run(command: list[str], folder: Path, cache: str = "cache") -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        # Whatever the user's cache folder has.
        env={**os.environ, "XDG_CACHE_HOME": str(folder / cache)},
        capture_output=True,
        text=True,
        timeout=_TIME_LIMIT_S,
        check=False,
    )
    if done.returncode:
        end = (done.stdout + done.stderr)[-2000:]
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{end}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    known = pairs()
    measured(folder, [known[name] for name in options.names] or list(known.values()))


def measured(folder: Path, some: Sequence[Pair]) -> list[Verdict]:
    """Record pairs and judge them; print what was found."""
    verdicts = []
    for pair in some:
        begun = time.monotonic()
        for kind in pair.kinds:
            record(pair, kind, folder)
        verdicts.append(verdict(pair, folder))
        told = verdicts[-1].told or "healthy"
        print(f"{pair.name:36} {told:10} {time.monotonic() - begun:5.1f} s", flush=True)
        for title in verdicts[-1].false:
            print(f"    false: {title}", flush=True)
        for title in verdicts[-1].slow:
            print(f"    slow: {title}", flush=True)
    print(summary(verdicts), flush=True)
    return verdicts


if __name__ == "__main__":
    main()
