"""Run the programs of `cases/` one after the other: profile them, or time them without a profiler.

usage: record_cases.py FOLDER profile|time NAME...

Writes NAME.dcprof, or prints the least processor seconds of three runs each, which other programs
on the machine do not disturb. One process for all, because importing torch takes longer than any;
programs of JAX (jax_*) have one of their own.
"""

from __future__ import annotations

import runpy
import sys
import time
from pathlib import Path

import deepcontext

CASES = Path(__file__).parent / "cases"


def run(name: str) -> float:
    begun = time.process_time()
    runpy.run_path(str(CASES / f"{name}.py"), run_name="__main__")
    return time.process_time() - begun


def main() -> None:
    folder, mode, *names = sys.argv[1:]
    if not names[0].startswith("jax_"):
        import torch

        torch.set_num_threads(1)
    for name in names:
        if mode == "profile":
            deepcontext.start(Path(folder) / f"{name}.dcprof")
            run(name)
            deepcontext.stop()
        else:
            print("seconds", name, min(run(name) for _ in range(3)))


if __name__ == "__main__":
    main()
