"""Run the programs of `cases/` one after the other: profile them, or time them without a profiler.

usage: record_cases.py FOLDER profile|time NAME...

Writes NAME.dcprof. Timed programs take turns, so that what disturbs one disturbs the others; each
line printed is NAME and the processor seconds of its runs, in order. One process for all, because
importing torch takes longer than any; programs of JAX (jax_*) have one of their own. When they are timed,
programs of JAX that were compiled before come from a cache in FOLDER, except for those of `_COMPILING`.
"""

from __future__ import annotations

import runpy
import sys
import time
from pathlib import Path

import deepcontext

CASES = Path(__file__).parent / "cases"
_ROUNDS = 7
# What is measured of these is how often they compile.
_COMPILING = ("jax_retrace",)


def run(name: str) -> float:
    begun = time.process_time()
    runpy.run_path(str(CASES / f"{name}.py"), run_name="__main__")
    return time.process_time() - begun


def profile(folder: Path, names: list[str]) -> None:
    for name in names:
        deepcontext.start(folder / f"{name}.dcprof")
        run(name)
        deepcontext.stop()


def print_times(names: list[str]) -> None:
    for name in names:
        run(name)  # loads what it needs
    rounds = [[run(name) for name in names] for _ in range(_ROUNDS)]
    for name, seconds in zip(names, zip(*rounds, strict=True), strict=True):
        print("seconds", name, *seconds)


def prepare(names: list[str], cache: Path | None) -> None:
    """Import the framework: an import is no part of a case."""
    if not names[0].startswith("jax_"):
        import torch

        torch.set_num_threads(1)
        return
    import jax

    jax.devices()
    if cache and not names[0].startswith(_COMPILING):
        jax.config.update("jax_compilation_cache_dir", str(cache))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def main() -> None:
    folder, mode, *names = sys.argv[1:]
    if mode == "profile":
        prepare(names, None)
        profile(Path(folder), names)
    else:
        prepare(names, Path(folder) / "cache")
        print_times(names)


if __name__ == "__main__":
    main()
