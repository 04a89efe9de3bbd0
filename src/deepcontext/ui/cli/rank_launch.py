"""`deepcontext profile` as one rank of a job: all ranks write one run directory."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format import run_directory
from deepcontext.profiler.recording.launch.chosen_ranks import first_chosen, is_chosen
from deepcontext.profiler.recording.launch.command import (
    LaunchCommand,
    plain_command,
    profiled_command,
)
from deepcontext.profiler.recording.launch.job import join_run_directory

PROFILE_SUFFIX: Final = ".dcprof"

if TYPE_CHECKING:
    from deepcontext.profiler.recording.launch.options import LaunchOptions
    from deepcontext.profiler.recording.launch.program import Program
    from deepcontext.profiler.recording.rank import Rank


def rank_command(
    program: Program, options: LaunchOptions, rank: Rank, *, output: str | None
) -> LaunchCommand:
    """Return the command that runs the program in one rank; join the run directory of the job.

    Args:
        program: the program of all ranks.
        options: as for a program outside a job; a `run` means that children are recorded.
        rank: what the launcher says.
        output: the output as the user typed it; None for the default.

    Raises:
        UserError: the job has none of the chosen ranks, or the directory cannot or may not be made.
        EnvironmentProblem: the machine fails to make the directory.
    """
    # Only one rank prints for the job, because the output of several ranks would interleave.
    speaks = rank.number == first_chosen(options.ranks, rank)
    if not is_chosen(options.ranks, rank):
        return plain_command(program)
    label = _label(output or program.stem)
    if speaks and not options.quiet and output not in {None, label}:
        print(
            f"[deepcontext] the ranks of a job write a run directory, '{label}', not '{output}'",
            file=sys.stderr,
        )
    job = str(Path(label).absolute())
    options = replace(
        options,
        label=label,
        job=job,
        run=options.run and job,
        report=options.report and speaks,
        quiet=options.quiet or not speaks,
    )
    path = join_run_directory(options, rank)
    return profiled_command(program, replace(options, output=str(path)))


def _label(output: str) -> str:
    if output.endswith(run_directory.SUFFIX):
        return output
    return f"{output.removesuffix(PROFILE_SUFFIX)}{run_directory.SUFFIX}"
