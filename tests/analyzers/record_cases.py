"""Run the programs of `cases/`: profile those named on standard input, or time some without a profiler.

usage: record_cases.py FOLDER profile torch|jax     (then a NAME a line, or "NAME warm")
       record_cases.py FOLDER time torch|jax NAME...

Profiling writes NAME.dcprof and then prints "recorded NAME"; a case "ranks_..." is a job of two processes,
a case "shapes_..." is recorded with shapes, and with the peaks of this machine; those of `_WITH_HOLDERS` are
recorded with holders; a warm one has run before, as timed ones have.
Timed programs take turns, so that a disturbance affects them all; each line printed is "seconds", NAME and
the processor seconds of its runs, in order. One process runs all cases of a framework, because the import
takes longer than any case.
Timed programs of JAX come compiled from a cache in FOLDER, except for those of `_COMPILING`.
"""

from __future__ import annotations

import subprocess
import sys
import time
import types
from pathlib import Path

import deepcontext
from deepcontext.collectors.torch.peak_measurement import measure_peaks
from deepcontext.profiler.format import peaks, run_directory
from deepcontext.profiler.model.merging import merge
from deepcontext.profiler.model.profile import Profile

CASES = Path(__file__).parent / "cases"
_ROUNDS = 7
# These measure compiling itself, or compare it with the rest of the program.
_COMPILING = ("jax_retrace", "jax_loop")
_WITH_HOLDERS = ("memory_", "kept_outputs_")


def run(name: str) -> float:
    """Run a case as the main module, which it stays until the next one runs; return its seconds."""
    path = str(CASES / f"{name}.py")
    code = compile(Path(path).read_text(encoding="utf-8"), path, "exec")
    module = types.ModuleType("__main__")
    module.__file__ = path
    sys.modules["__main__"] = module
    begun = time.process_time()
    exec(code, vars(module))
    return time.process_time() - begun


def profile_each(folder: Path) -> None:
    for line in sys.stdin:
        name, *is_warm = line.split()
        if is_warm:
            run(name)  # loads what it needs
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)  # a case may have set another number
        if name.startswith("ranks_"):
            profile_ranks(folder, name)
        else:
            if name.startswith("shapes_") and not peaks.measured():
                peaks.keep(measure_peaks())
            deepcontext.start(
                folder / f"{name}.dcprof",
                shapes=name.startswith("shapes_"),
                holders=name.startswith(_WITH_HOLDERS),
            )
            run(name)
            deepcontext.stop()
        print(f"recorded {name}", flush=True)


def profile_ranks(folder: Path, name: str) -> None:
    """Profile the case as a job of two processes, and merge what they write."""
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    profile = ["-m", "deepcontext", "profile", "-q", "-o", f"{name}.dcrun"]
    command = [sys.executable, *launch, *profile, str(CASES / f"{name}.py")]
    subprocess.run(command, cwd=folder, check=True, stdout=sys.stderr)
    files = run_directory.profiles(folder / f"{name}.dcrun")
    merge({file.name: Profile.load(file) for file in files}).save(folder / f"{name}.dcprof")


def print_times(names: list[str]) -> None:
    for name in names:
        run(name)  # loads what it needs
    rounds = [[run(name) for name in names] for _ in range(_ROUNDS)]
    for name, seconds in zip(names, zip(*rounds, strict=True), strict=True):
        print("seconds", name, *seconds)


def prepare(framework: str, cache: Path | None) -> None:
    """Import the framework, because the import is not a part of a case."""
    if framework == "torch":
        import torch

        torch.set_num_threads(1)
        return
    import jax

    jax.devices()
    if cache:
        jax.config.update("jax_compilation_cache_dir", str(cache))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def main() -> None:
    folder, mode, framework, *names = sys.argv[1:]
    if mode == "profile":
        prepare(framework, None)
        profile_each(Path(folder))
    else:
        is_cached = not any(name.startswith(_COMPILING) for name in names)
        prepare(framework, Path(folder) / "cache" if is_cached else None)
        print_times(names)


if __name__ == "__main__":
    main()
