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
from typing import TYPE_CHECKING, Final, NoReturn

from deepcontext.errors import EnvironmentProblem, UserError
from deepcontext.profiler.format import run_directory
from deepcontext.profiler.recording.launch.chosen_ranks import ranges_of
from deepcontext.profiler.recording.launch.command import create_run_directory, profiled_command
from deepcontext.profiler.recording.launch.options import LaunchOptions
from deepcontext.profiler.recording.launch.program import Program
from deepcontext.profiler.recording.rank import current_rank
from deepcontext.profiler.recording.session_file import check as check_output
from deepcontext.ui.cli.command import Command, Parser
from deepcontext.ui.cli.output import STANDARD_OUTPUT, add_force_option
from deepcontext.ui.cli.rank_launch import PROFILE_SUFFIX, rank_command
from deepcontext.ui.cli.session_options import (
    add_program_options,
    add_session_options,
    session_options,
)

if TYPE_CHECKING:
    import argparse

    from deepcontext.profiler.recording.launch.command import LaunchCommand

SUFFIX: Final = PROFILE_SUFFIX


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
  torchrun --nproc-per-node 2 -m deepcontext profile train.py      every rank, in train.dcrun
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
        "current folder); replaces an older profile, but no other file; a rank of a "
        "job (torchrun, mpirun, srun) writes into the run directory of the job, FILE.dcrun, which "
        "replaces that of an earlier job",
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
    parser.option(
        "--ranks",
        metavar="LIST",
        default="",
        help="ranks of a job to record, as in 0,8-15 (default: all); the other ranks run without the "
        "profiler; a rank counts where the launcher's variables tell it at the start (torchrun, "
        "mpirun, srun), not where the program itself numbers its processes",
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
    ranges_of(arguments.ranks)
    run = None if rank else _run_directory(arguments, program)
    label = str(run or arguments.output or f"{program.stem}{SUFFIX}")
    output = Path(label).absolute()
    if run is None and rank is None:
        check_output(label, force=arguments.force)
    options = LaunchOptions(
        output=str(output),
        label=label,
        run="" if run is None else str(output),
        session=session_options(arguments),
        script=program.label,
        report=not (arguments.no_report or arguments.quiet),
        quiet=arguments.quiet,
        strict=arguments.strict,
        force=arguments.force,
        import_folder=program.import_folder(),
        ranks=arguments.ranks,
    )
    if rank is not None:
        options = replace(options, run="" if arguments.children == "none" else str(output))
        _become(rank_command(program, options, rank, output=arguments.output))
    if run is not None:
        create_run_directory(options)
        options = replace(options, output=str(run_directory.profile_path(output)))
    _become(profiled_command(program, options))


def _become(command: LaunchCommand) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(command.argv[0], command.argv, command.environment)  # noqa: S606  Python itself
    except OSError as error:
        raise EnvironmentProblem(f"cannot start '{command.argv[0]}': {error.strerror}") from error


def _run_directory(arguments: argparse.Namespace, program: Program) -> Path | None:
    """Return the run directory to write, None if a single profile is written."""
    output = arguments.output
    is_wanted = arguments.children != "none" or (output or "").endswith(run_directory.SUFFIX)
    if not is_wanted:
        return None
    if output is not None and not output.endswith(run_directory.SUFFIX):
        raise UserError(
            f"cannot write the profiles of several processes to '{output}': the output is a folder; "
            f"choose a name that ends in {run_directory.SUFFIX}"
        )
    return Path(output or f"{program.stem}{run_directory.SUFFIX}")


COMMAND: Final = Command(
    "profile", "run a program and write a profile of it", _parser, _run, takes_program=True
)
