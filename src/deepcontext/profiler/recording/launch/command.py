"""The command that runs a program exactly as plain `python` does, with the profiler inside.

Does not run it. The program gets a fresh interpreter, so Python itself provides `__main__`,
`sys.path`, signals, exit status and pickling. Only PYTHONPATH and one variable
differ, and `path/sitecustomize.py` removes both.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext.errors import EnvironmentProblem
from deepcontext.profiler.format import run_directory
from deepcontext.profiler.recording.launch import python_words
from deepcontext.profiler.recording.launch.options import VARIABLE, LaunchOptions
from deepcontext.profiler.recording.launch.program import refuse_flags

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepcontext.profiler.recording.launch.program import Program

SHIM_FOLDER: Final = Path(__file__).resolve().parent / "path"
_CHILDREN_SHIM_FOLDER: Final = SHIM_FOLDER.with_name("children_path")


@dataclass(frozen=True, slots=True)
class LaunchCommand:
    """One process to start.

    Attributes:
        argv: its arguments, the interpreter first.
        environment: its environment variables.
    """

    argv: tuple[str, ...]
    environment: dict[str, str]


def plain_command(program: Program) -> LaunchCommand:
    """Return the command that runs `program` without the profiler."""
    if not sys.executable:
        raise EnvironmentProblem(
            "cannot start the program: this Python does not know its own executable "
            "(sys.executable is empty); run deepcontext with a normally installed python"
        )
    flags = (*interpreter_flags(tuple(sys.orig_argv)), *program.flags)
    argv = (sys.executable, *flags, *program.arguments)
    return LaunchCommand(argv, dict(os.environ))


def profiled_command(program: Program, options: LaunchOptions) -> LaunchCommand:
    """Return the command that runs `program` with a session from before its first line.

    Raises:
        UserError: the interpreter flags of this process make Python ignore PYTHONPATH.
    """
    plain = plain_command(program)
    refuse_flags(interpreter_flags(tuple(sys.orig_argv)))
    environment = plain.environment
    python_path = _children_path(environment, options)
    note = {"pythonpath": python_path, "options": asdict(options)}
    environment["PYTHONPATH"] = _before(SHIM_FOLDER, python_path)
    environment[VARIABLE] = json.dumps(note)
    return LaunchCommand(plain.argv, environment)


def children_environment(options: LaunchOptions) -> dict[str, str]:
    """Return the environment of a command whose children are recorded, but not the command itself."""
    environment = dict(os.environ)
    python_path = _children_path(environment, options)
    if python_path is not None:
        environment["PYTHONPATH"] = python_path
    return environment


def create_run_directory(options: LaunchOptions, *, program: int = 0) -> None:
    """Make the run directory that the options name.

    Args:
        options: how the job is recorded.
        program: number of the process that starts all others, 0 if it is not recorded itself.

    Raises:
        UserError: the directory cannot or may not be made.
        EnvironmentProblem: the machine fails to make the directory.
    """
    run_directory.create(
        Path(options.run),
        program=options.script,
        options={**children_note(options), "program": program},
        profile=Path(options.output) if options.output else None,
    )


def children_note(options: LaunchOptions) -> dict[str, object]:
    """Return what the shim of children reads, in JSON types."""
    return {
        "run": options.run or options.job,
        "children": options.children,
        "ranks": options.ranks,
        "session": asdict(options.session),
        "package_root": str(SHIM_FOLDER.parents[4]),
    }


def _children_path(environment: Mapping[str, str], options: LaunchOptions) -> str | None:
    """Return the PYTHONPATH of the program's children."""
    # Children of a program that is profiled inside another run belong to this run only.
    python_path = run_directory.without_launch_folders(environment.get("PYTHONPATH"))
    if not options.run:
        return python_path
    run_path = _before(run_directory.launch_folder(Path(options.run)), python_path)
    return _before(_CHILDREN_SHIM_FOLDER, run_path)


def _before(folder: Path, python_path: str | None) -> str:
    # An empty entry would mean the current folder, which an empty PYTHONPATH does not.
    return f"{folder}{os.pathsep}{python_path}" if python_path else str(folder)


def interpreter_flags(orig_argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return the flags before ``-m deepcontext`` on an interpreter's command line.

    Flags of any other start (those in a console script's first line) were not chosen by the user,
    and are not returned.
    """
    flags, program = python_words.split(orig_argv[1:])
    return flags if program[:2] == ("-m", "deepcontext") else ()
