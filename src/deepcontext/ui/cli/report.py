"""`deepcontext report`: print a profile's report, made by `deepcontext.ui.report`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from deepcontext.errors import UserError
from deepcontext.ui.cli.command import Parser, positive_int
from deepcontext.ui.cli.inputs import (
    ANY_PROFILE,
    chosen_of,
    load_all,
    merged_of_many,
    peaks_option,
)
from deepcontext.ui.cli.windows import of_window, window_options
from deepcontext.ui.known_peaks import with_known_peaks

if TYPE_CHECKING:
    import argparse

    from deepcontext.profiler.model.profile import Profile


def make_parser() -> Parser:
    """Return the parser of the words after the command's name."""
    parser = Parser(
        "deepcontext report",
        usage="deepcontext report [options] FILE",
        description="Print where the time of a profiled program went.",
        epilog="""\
examples:
  deepcontext report train.dcprof
  deepcontext report train.dcprof --full
  deepcontext report train.dcprof --limit 40
  deepcontext report train.dcprof --window all        with set-up, warm-up and the end
  deepcontext report train.dcprof --steps             how long steps took, and which were slow
  deepcontext report train.dcrun --process rank0      one process of a job
  deepcontext report train.dcprof --json | python -m json.tool

exit codes:
  0 done, 2 unknown metric or missing file, 5 the file is damaged, foreign or too new""",
    )
    parser.option("file", metavar="FILE", help=ANY_PROFILE)
    parser.option(
        "--limit",
        type=positive_int,
        metavar="N",
        help="rows of each table, in the full report (default: 15)",
    )
    parser.option(
        "--full", action="store_true", help="print every section; without it at most 80 lines"
    )
    parser.option(
        "--metric",
        metavar="NAME",
        help="metric that the tables show and are sorted by (default: host_time_ns, the time in operators; "
        "elapsed_time_ns for a program without operators)",
    )
    parser.option(
        "--summary",
        action="store_true",
        help="print only the dozen lines that 'deepcontext profile' prints at the end",
    )
    parser.option(
        "--process",
        metavar="NAME",
        help="process of a run directory to report: its number as listed, or rank0, rank1, ...; without "
        "it all ranks together, or the process that used the most processor time",
    )
    parser.option("--json", action="store_true", help="print one JSON object instead of tables")
    parser.option(
        "--steps",
        action="store_true",
        help="print only the steps: what a step is, their times over the run, the slowest, and the windows",
    )
    peaks_option(parser)
    window_options(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Run the command; return the exit code."""
    # Imported here, so that `deepcontext profile` starts the program without loading these modules.
    from rich.console import Console  # noqa: PLC0415

    from deepcontext.ui.report import (  # noqa: PLC0415
        job_to_dict,
        print_process_summary,
        render_report,
        render_summary,
        report_to_dict,
    )

    merged = None if arguments.process else merged_of_many(arguments.file)
    processes = load_all(arguments.file) if merged is None else []
    is_job = len(processes) > 1
    profile = merged or chosen_of(processes, arguments.file, process=arguments.process)
    if arguments.steps:
        return _print_steps(profile, arguments)
    profile = of_window(with_known_peaks(profile, arguments.peaks), arguments)
    if arguments.json:
        content = report_to_dict(profile, limit=arguments.limit or 15, metric=arguments.metric)
        if is_job:
            content |= job_to_dict(processes)
        print(json.dumps(content, indent=2, allow_nan=False))
    elif arguments.summary:
        if is_job:
            print_process_summary(processes, console=Console())
        # `deepcontext profile` uses this option and itself suggests the next command.
        render_summary(profile, console=Console(), path=None)
    else:
        render_report(
            profile,
            console=Console(),
            limit=arguments.limit,
            metric=arguments.metric,
            full=arguments.full,
            processes=processes,
        )
    return 0


def _print_steps(profile: Profile, arguments: argparse.Namespace) -> int:
    from rich.console import Console  # noqa: PLC0415  as in `run`

    from deepcontext.ui.report.steps import render_steps  # noqa: PLC0415

    if arguments.json or arguments.summary or arguments.full or arguments.window is not None:
        raise UserError("--steps is a table of the whole run; leave out the other options")
    render_steps(profile, console=Console(), warmup=arguments.warmup)
    return 0
