"""`deepcontext profile`: run a program as it runs without the profiler, and record its processes.

Checks the request. A Python program: this process becomes the program (`os.execve`), so that process
id, signals, exit status and standard streams are the program's, and `deepcontext.profiler.recording.launch`
continues in the program. Any other command: `profile_command.py` runs it and waits.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from deepcontext import native_core
from deepcontext.errors import DeepContextError, EnvironmentProblem, UserError
from deepcontext.profiler.format import run_directory
from deepcontext.profiler.recording.launch.chosen_ranks import ranges_of
from deepcontext.profiler.recording.launch.command import create_run_directory, profiled_command
from deepcontext.profiler.recording.launch.options import LaunchOptions
from deepcontext.profiler.recording.launch.program import Program
from deepcontext.profiler.recording.launch.target import resolve
from deepcontext.profiler.recording.rank import current_rank
from deepcontext.profiler.recording.session_file import check as check_output
from deepcontext.ui.cli.command import Parser
from deepcontext.ui.cli.output import STANDARD_OUTPUT, add_force_option
from deepcontext.ui.cli.profile_outputs import with_outputs
from deepcontext.ui.cli.rank_launch import PROFILE_SUFFIX, rank_command
from deepcontext.ui.cli.session_options import (
    add_program_options,
    add_session_options,
    session_options,
)

if TYPE_CHECKING:
    import argparse

    from deepcontext.profiler.recording.launch.command import LaunchCommand


def make_parser() -> Parser:
    """Return the parser of the words after the command's name."""
    parser = Parser(
        "deepcontext profile",
        usage="deepcontext profile [options] script.py [args ...]\n"
        "       deepcontext profile [options] -m module [args ...]\n"
        "       deepcontext profile [options] -c code [args ...]\n"
        "       deepcontext profile [options] command [args ...]",
        description=f"""\
Run a program and write a profile of it and of the processes that it starts.

The program behaves as without deepcontext: same arguments, exit code, signals, standard output.
Everything after the script, module, code or command belongs to the program. deepcontext prints to
standard error; its lines begin with [deepcontext].

A command is looked up on PATH. Commands written in Python (vllm, pytest) and "python train.py" are
recorded like scripts. Launchers (torchrun, accelerate, deepspeed, mpirun) and other commands (a shell
script) are not recorded themselves; the processes that they start are.

A program that is one process writes one profile, NAME{PROFILE_SUFFIX}. If it starts other processes that are
recorded, there is a run directory instead, NAME{run_directory.SUFFIX}, a folder with a profile of each
process.""",
        epilog="""\
examples:
  deepcontext profile train.py --epochs 1
  deepcontext profile -o base.dcprof --no-report train.py
  deepcontext profile -m package.train --epochs 1
  deepcontext profile vllm serve ./model
  deepcontext profile torchrun --nproc-per-node 2 train.py      all processes in train.dcrun
  deepcontext profile --children none train.py      not the processes that train.py starts
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
        help=f"profile to write (default: the name of the program with the suffix {PROFILE_SUFFIX}, in the "
        "current folder); replaces an older profile, but no other file; with the suffix "
        f"{run_directory.SUFFIX}, a run directory even if there is only one process; a rank of a job "
        "(torchrun, mpirun, srun) writes into the run directory of the job, FILE.dcrun, which replaces "
        "the run directory of an earlier job",
    )
    add_force_option(parser)
    parser.option(
        "--children",
        choices=("frameworks", "none", "all"),
        default="frameworks",
        help="which of the processes started by the program to record: those that import torch or jax "
        "(frameworks), none, or all Python processes from their first line, including children of a "
        "bare os.fork (default: frameworks)",
    )
    parser.option(
        "--ranks",
        metavar="LIST",
        default="",
        help="ranks of a job to record, as in 0,8-15 (default: all); the other ranks run without the "
        "profiler; ranks are known only from the launcher's variables (torchrun, mpirun, srun), not "
        "if the program itself numbers its processes",
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


def run(arguments: argparse.Namespace) -> int:
    """Run the command; return the exit code."""
    if arguments.output == STANDARD_OUTPUT:
        raise UserError(
            "cannot write the profile to '-': standard output is the program's; name a file with -o"
        )
    native_core.require()
    ranges_of(arguments.ranks)
    target = resolve(arguments.program)
    options = LaunchOptions(
        output="",
        label="",
        session=session_options(arguments),
        script=target.label,
        report=not (arguments.no_report or arguments.quiet),
        quiet=arguments.quiet,
        strict=arguments.strict,
        force=arguments.force,
        children=arguments.children,
        ranks=arguments.ranks,
    )
    if isinstance(target, Program):
        _run_program(target, options, arguments.output)
    from deepcontext.ui.cli import profile_command  # noqa: PLC0415  a program need not pay for it

    return profile_command.run(target, options, arguments.output)


def _run_program(program: Program, options: LaunchOptions, output: str | None) -> NoReturn:
    program.check()
    rank = current_rank()
    options = replace(options, import_folder=program.import_folder())
    if rank is not None:
        options = replace(options, run="" if options.children == "none" else "the job's")
        _become(rank_command(program, options, rank, output=output))
    options = with_outputs(options, program.stem, output)
    if options.output:
        check_output(options.label, force=options.force)
    if options.run:
        create_run_directory(options, program=os.getpid())
    if not options.output:
        own = run_directory.named(run_directory.profile_path(Path(options.run)), "program")
        options = replace(options, output=str(own), label=options.run_label)
    try:
        _become(profiled_command(program, options))
    except DeepContextError:
        if options.run:
            run_directory.remove(Path(options.run))
        raise


def _become(command: LaunchCommand) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(command.argv[0], command.argv, command.environment)  # noqa: S606  Python itself
    except OSError as error:
        raise EnvironmentProblem(f"cannot start '{command.argv[0]}': {error.strerror}") from error
