"""`deepcontext profile`: run a program as plain `python` does, with the profiler inside.

Checks the request and then becomes the program (`os.execve`), so that process id, signals, exit
status and standard streams are the program's. `deepcontext.profiler.recording.launch` continues in the
program.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext.errors import EnvironmentProblem, UserError
from deepcontext.profiler.format import run_directory
from deepcontext.profiler.recording.launch.command import create_run_directory, profiled_command
from deepcontext.profiler.recording.launch.options import LaunchOptions
from deepcontext.profiler.recording.launch.program import Program
from deepcontext.profiler.recording.rank import Rank, current_rank
from deepcontext.profiler.recording.session_file import check as check_output
from deepcontext.ui.cli.command import Command, Parser
from deepcontext.ui.cli.output import STANDARD_OUTPUT, add_force_option
from deepcontext.ui.cli.session_options import (
    add_program_options,
    add_session_options,
    session_options,
)

if TYPE_CHECKING:
    import argparse

SUFFIX: Final = ".dcprof"


def _parser() -> Parser:
    parser = Parser(
        "deepcontext profile",
        usage="deepcontext profile [options] script.py [args ...]\n"
        "       deepcontext profile [options] -m module [args ...]\n"
        "       deepcontext profile [options] -c code [args ...]",
        description="""\
Run a program and write a profile of it.

The program behaves as under plain python: same arguments, exit code, signals, standard output.
Everything after the script, module or code belongs to the program. deepcontext prints to standard
error; its lines begin with [deepcontext].""",
        epilog="""\
examples:
  deepcontext profile train.py --epochs 1
  deepcontext profile -o base.dcprof --no-report train.py
  deepcontext profile -m package.train --epochs 1
  deepcontext profile --children frameworks train.py      also the processes it starts
  torchrun --nproc-per-node 2 -m deepcontext profile train.py      every rank, one file each
  python -X utf8 -m deepcontext profile train.py      flags before -m deepcontext reach the program

exit codes:
  the program's exit code; before the program starts, 2 if the request is invalid and 4 if this
  machine lacks something. If only the profiler fails, the program continues unprofiled; with
  --strict, a successful program then ends with 4.""",
    )
    parser.option(
        "-o",
        "--output",
        metavar="FILE",
        help=f"profile to write (default: the name of the script with the suffix {SUFFIX}, in the "
        "current folder); replaces an older profile, but no other file; a job of several "
        "processes (torchrun, mpirun, srun) writes one file per rank, FILE.rankN.dcprof",
    )
    add_force_option(parser)
    parser.option(
        "--children",
        choices=("none", "frameworks"),
        default="none",
        help="which processes that the program starts to record: processes that import torch or jax "
        "(frameworks), or none (default: none); with frameworks the output is a run directory, a "
        f"folder with the suffix {run_directory.SUFFIX} that holds a profile of each process",
    )
    add_session_options(parser)
    add_program_options(parser)
    parser.option("--no-report", action="store_true", help="print no report after the program ends")
    parser.option(
        "-q",
        "--quiet",
        action="store_true",
        help="print nothing unless the profiler fails; implies --no-report",
    )
    parser.option(
        "--strict",
        action="store_true",
        help="exit with code 4 if the program succeeds but profiling fails: requested data is missing "
        "entirely (GPU work without a single record), or no file was written",
    )
    return parser


def _run(arguments: argparse.Namespace) -> int:
    program = Program(arguments.program)
    program.check()
    rank = current_rank()
    if arguments.output == STANDARD_OUTPUT:
        raise UserError(
            "cannot write the profile to '-': standard output is the program's; name a file with -o"
        )
    run = _run_directory(arguments, program, rank)
    label = str(run or _named_for(arguments.output or f"{program.stem}{SUFFIX}", rank))
    output = Path(label).absolute()
    if run is None:
        check_output(label, force=arguments.force)
    options = LaunchOptions(
        output=str(output),
        label=label,
        run="" if run is None else str(output),
        session=session_options(arguments),
        script=program.label,
        # One report per job, because the output of several ranks would interleave.
        report=not (arguments.no_report or arguments.quiet or (rank and rank.number > 0)),
        quiet=arguments.quiet,
        strict=arguments.strict,
        force=arguments.force,
        import_folder=program.import_folder(),
    )
    if run is not None:
        create_run_directory(options)
        options = replace(options, output=str(run_directory.profile_path(output)))
    command = profiled_command(program, options)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(command.argv[0], command.argv, command.environment)  # noqa: S606  Python itself
    except OSError as error:
        raise EnvironmentProblem(f"cannot start '{command.argv[0]}': {error.strerror}") from error


def _run_directory(
    arguments: argparse.Namespace, program: Program, rank: Rank | None
) -> Path | None:
    """Return the run directory to write, None if a single profile is written."""
    output = arguments.output
    is_wanted = arguments.children != "none" or (output or "").endswith(run_directory.SUFFIX)
    if not is_wanted:
        return None
    if rank is not None:
        raise UserError(
            "cannot record children of one rank of a job: all ranks would write the same folder; "
            "leave out --children, or profile the launcher itself"
        )
    if output is not None and not output.endswith(run_directory.SUFFIX):
        raise UserError(
            f"cannot write the profiles of several processes to '{output}': the output is a folder; "
            f"choose a name that ends in {run_directory.SUFFIX}"
        )
    return Path(output or f"{program.stem}{run_directory.SUFFIX}")


def _named_for(label: str, rank: Rank | None) -> str:
    """Return a separate file for each rank; with one name, the last rank would replace the others."""
    return label if rank is None else str(rank.name(Path(label)))


COMMAND: Final = Command(
    "profile", "run a program and write a profile of it", _parser, _run, takes_program=True
)
