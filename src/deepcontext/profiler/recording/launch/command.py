"""The command that runs a program exactly as plain `python` does, with the profiler inside.

Does not run it. The program gets a fresh interpreter, so Python itself provides `__main__`,
`sys.path`, signals, exit status and pickling. Only one folder on PYTHONPATH and one variable
differ, and `path/sitecustomize.py` removes both.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext.errors import EnvironmentProblem, UserError
from deepcontext.profiler.format import run_directory
from deepcontext.profiler.recording.launch.options import VARIABLE, LaunchOptions

if TYPE_CHECKING:
    from deepcontext.profiler.recording.launch.program import Program

SHIM_FOLDER: Final = Path(__file__).resolve().parent / "path"
CHILDREN_SHIM: Final = SHIM_FOLDER.with_name("children_path") / "sitecustomize.py"


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
    argv = (sys.executable, *interpreter_flags(tuple(sys.orig_argv)), *program.arguments)
    return LaunchCommand(argv, dict(os.environ))


def profiled_command(program: Program, options: LaunchOptions) -> LaunchCommand:
    """Return the command that runs `program` with a session from before its first line.

    Raises:
        UserError: the interpreter flags of this process make Python ignore PYTHONPATH.
    """
    plain = plain_command(program)
    _check_flags(plain)
    environment = plain.environment
    python_path = environment.get("PYTHONPATH")
    if options.run:
        python_path = _before(run_directory.launch_folder(Path(options.run)), python_path)
    note = {"pythonpath": python_path, "options": asdict(options)}
    environment["PYTHONPATH"] = _before(SHIM_FOLDER, python_path)
    environment[VARIABLE] = json.dumps(note)
    return LaunchCommand(plain.argv, environment)


def create_run_directory(options: LaunchOptions) -> None:
    """Make the run directory that the options name.

    Raises:
        UserError: the directory cannot or may not be made.
        EnvironmentProblem: the machine fails to make the directory.
    """
    run_directory.create(
        Path(options.run),
        program=options.script,
        shim=CHILDREN_SHIM,
        options=children_note(options),
    )


def children_note(options: LaunchOptions) -> dict[str, object]:
    """Return what the shim of children reads, in JSON types."""
    return {
        "run": options.run or options.job,
        "ranks": options.ranks,
        "session": asdict(options.session),
        "package_root": str(SHIM_FOLDER.parents[4]),
    }


def _before(folder: Path, python_path: str | None) -> str:
    # An empty entry would mean the current folder, which an empty PYTHONPATH does not.
    return f"{folder}{os.pathsep}{python_path}" if python_path else str(folder)


def interpreter_flags(orig_argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return the flags before ``-m deepcontext`` on an interpreter's command line.

    Flags of any other start (those in a console script's first line) were not chosen by the user,
    and are not returned.
    """
    index = 1
    while index < len(orig_argv) and orig_argv[index].startswith("-"):
        word = orig_argv[index]
        if word == "-mdeepcontext":
            return orig_argv[1:index]
        last = "" if word.startswith("--") else word[-1]
        if last == "m" and orig_argv[index + 1 : index + 2] == ("deepcontext",):
            joined = () if word == "-m" else (word[:-1],)  # -Bm
            return (*orig_argv[1:index], *joined)
        index += 2 if last in {"X", "W"} or word == "--check-hash-based-pycs" else 1
    return ()


def _check_flags(command: LaunchCommand) -> None:
    has_flags = len(command.argv) > 1 and command.argv[1].startswith("-")
    blocking = [
        flag
        for flag, is_set in (
            ("-I", sys.flags.isolated),
            ("-E", sys.flags.ignore_environment and not sys.flags.isolated),
            ("-S", sys.flags.no_site),
        )
        if is_set
    ]
    if has_flags and blocking:
        raise UserError(
            f"cannot profile under 'python {blocking[0]}': the profiler starts through PYTHONPATH "
            f"and the site module, which {blocking[0]} turns off; leave it out, or call "
            "deepcontext.profile() in the program"
        )
