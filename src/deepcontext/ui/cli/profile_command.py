"""`deepcontext profile COMMAND` for a launcher, a shell script or another non-Python command.

Runs the command as a child, waits for it, says once how the job ended, and ends as the command did.
The processes that the command starts find the profiler through PYTHONPATH.
"""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from deepcontext.errors import DeepContextError, EnvironmentProblem, UserError
from deepcontext.profiler.format import run_directory
from deepcontext.profiler.recording.launch import left_running, waiting
from deepcontext.profiler.recording.launch.command import (
    SHIM_FOLDER,
    children_environment,
    create_run_directory,
)
from deepcontext.profiler.recording.launch.job import join_run_directory
from deepcontext.profiler.recording.launch.short_report import print_short_report
from deepcontext.profiler.recording.launch.standard_error import StandardError
from deepcontext.profiler.recording.rank import current_rank
from deepcontext.ui.cli.profile_outputs import run_beside

if TYPE_CHECKING:
    from deepcontext.profiler.recording.launch.options import LaunchOptions
    from deepcontext.profiler.recording.launch.target import Executable


def run(command: Executable, options: LaunchOptions, output: str | None) -> int:
    """Run the command and record the processes that it starts.

    Args:
        command: what to run.
        options: as for a program.
        output: the output as the user typed it; None for the default.

    Returns:
        the command's exit code; does not return if a signal ended the command.

    Raises:
        UserError: children are not to be recorded, or the run directory may not be written.
        EnvironmentProblem: the machine cannot start the command.
    """
    if options.children == "none":
        raise UserError(
            f"cannot profile '{command.label}' with --children none: deepcontext records only the "
            "processes that this command starts; leave the option out"
        )
    label = run_beside(output or command.stem)
    options = replace(options, run=str(Path(label).absolute()), run_label=label)
    stderr = StandardError()
    options = _make_run_directory(options)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        status = waiting.run(command, children_environment(options))
    except EnvironmentProblem:
        _remove_unused(options)
        raise
    try:
        is_recorded = _say_end(options, stderr)
    except (OSError, DeepContextError) as error:  # the command may have removed the directory
        stderr.say(f"'{label}' is incomplete: {type(error).__name__}: {error}")
        is_recorded = False
    if options.strict and status == 0 and not is_recorded:
        return EnvironmentProblem.exit_code
    return waiting.end_as(status)


def _make_run_directory(options: LaunchOptions) -> LaunchOptions:
    """Make the run directory, or join that of the job if the command is one rank of a job."""
    rank = current_rank()
    if rank is None:
        create_run_directory(options)
        return options
    options = replace(options, job=options.run)
    join_run_directory(options, rank)
    # Only one rank prints for the job, because the output of several ranks would interleave. This
    # is not the first of `ranks`: if the command is a launcher, these are the ranks that the
    # launcher starts.
    return replace(options, quiet=options.quiet or rank.number > 0)


def _remove_unused(options: LaunchOptions) -> None:
    run_ = Path(options.run)
    if not options.job and not run_directory.is_used(run_):
        run_directory.remove(run_)


def _say_end(options: LaunchOptions, stderr: StandardError) -> bool:
    """Say what was recorded, and print the short report; return whether anything was recorded."""
    run_, label = Path(options.run), options.run_label
    left = left_running.told(run_, label)
    stderr.say(*run_directory.failure_notes(run_))
    if not run_directory.profiles(run_):
        if not left:
            _remove_unused(options)
        if not options.quiet:
            what = "ran Python" if options.children == "all" else "imported torch or jax"
            stderr.say(f"no profile written: no process that could be recorded {what}")
            stderr.say(*left)
        return False
    if options.quiet:
        return True
    stderr.say(f"{run_directory.count_text(run_)} written to '{label}'")
    if options.report and stderr.has_room():
        print_short_report(str(run_), os.environ, sys.executable, str(SHIM_FOLDER.parents[4]))
    stderr.say(*left)
    stderr.say(f"next: deepcontext report {shlex.quote(label)}")
    return True
