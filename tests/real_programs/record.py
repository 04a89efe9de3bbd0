"""Profile the programs beside this file, and keep the profiles for the golden reports.

usage: python -m tests.real_programs.record [NAME...]

The programs are ordinary ones, without a planted fault. Record on a quiet machine: the reports say how
busy it was. One of them needs pandas.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format import run_directory
from deepcontext.profiler.format.node_sections import EXEMPLARS
from deepcontext.profiler.model.job.fold import merge
from deepcontext.profiler.model.profile import Profile
from tests.fault_pairs.store import moved

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE: Final = Path(__file__).parent
PROGRAMS: Final = HERE / "programs"
PROFILES: Final = HERE / "profiles"
_EXAMPLES: Final = HERE.parents[1] / "examples"
# Where a stored profile has its program.
FOLDER: Final = "/programs"
_PROFILE: Final = (sys.executable, "-m", "deepcontext", "profile", "--no-report", "-o")
_PYTEST: Final = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null")
_RANKS: Final = (
    sys.executable,
    "-m",
    "torch.distributed.run",
    "--standalone",
    "--nproc-per-node",
    "2",
)
# What runs, after the name of the profile.
COMMANDS: Final[dict[str, tuple[str, ...]]] = {
    "answering": ("answering.py",),
    "balancing": ("balancing.py",),
    "jax_transformer": ("jax_transformer.py",),
    "pandas_features": ("pandas_features.py",),
    "ranks": ("ranks.py",),
    "simulations": ("simulations.py",),
    "slow_loader": ("slow_loader.py",),
    "spelling": ("spelling.py",),
    "physics_tests": (*_PYTEST, "physics_tests.py"),
    "torch_transformer": ("torch_transformer.py",),
}


def copy_programs(folder: Path) -> None:
    """Copy the programs, older than any profile, so that reports show their lines."""
    for name in COMMANDS:
        program = folder / f"{name}.py"
        source = PROGRAMS / program.name
        shutil.copy(source if source.exists() else _EXAMPLES / program.name, program)
        os.utime(program, (0, 0))


def record(name: str, folder: Path) -> Profile:
    """Profile a program in a folder that has it; return the profile, of all ranks for a job.

    Raises:
        subprocess.CalledProcessError: the program failed.
    """
    output = folder / (f"{name}.dcrun" if name == "ranks" else f"{name}.dcprof")
    command = [*_PROFILE, str(output), *COMMANDS[name]]
    if name == "ranks":
        command = [*_RANKS, *command[1:]]
    subprocess.run(command, cwd=folder, check=True)
    if name != "ranks":
        return Profile.load(output)
    files = run_directory.profiles(output)
    return merge({file.name: Profile.load(file) for file in files})


def main(names: Sequence[str]) -> None:
    PROFILES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        copy_programs(folder)
        places = {made: FOLDER, str(HERE.parents[1]): "/deepcontext"}
        places |= {sys.prefix: "/venv", sys.base_prefix: "/python"}
        for name in names or COMMANDS:
            profile = moved(record(name, folder), places)
            # No report shows the kept steps, which are most of a file.
            kept = {key: content for key, content in profile.sections.items() if key != EXEMPLARS}
            dataclasses.replace(profile, sections=kept).save(PROFILES / f"{name}.dcprof")


if __name__ == "__main__":
    main(sys.argv[1:])
