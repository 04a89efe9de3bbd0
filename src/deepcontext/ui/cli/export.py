"""`deepcontext export`: write a profile in another viewer's format (`deepcontext.ui.export`)."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from deepcontext.errors import UserError
from deepcontext.ui import export
from deepcontext.ui.cli.command import Parser
from deepcontext.ui.cli.export_tables import export_tables
from deepcontext.ui.cli.inputs import ANY_PROFILE, load_one
from deepcontext.ui.cli.output import Output, add_anonymise_option, add_force_option
from deepcontext.ui.cli.windows import ALL, of_window, window_options

if TYPE_CHECKING:
    import argparse


def make_parser() -> Parser:
    """Return the parser of the words after the command's name."""
    parser = Parser(
        "deepcontext export",
        usage="deepcontext export [options] --format FORMAT FILE",
        description="""\
Write a profile in the format of another viewer: pprof, speedscope, or collapsed stacks
(flamegraph.pl). These formats hold call paths and summed metrics; use 'deepcontext view' for
maxima, distributions, findings and the trust report.
perfetto and chrome-trace hold the time lines of the kept steps (the slowest ones, some random ones,
and those that the program marked), with the step times and the windows of the run as counters.
Parquet (needs the extra 'sql') is for DuckDB, Polars, Spark: a row for each metric of each call
path, of all metrics; a run directory becomes a file for each host, with all its processes.""",
        epilog="""\
examples:
  deepcontext export train.dcprof --format pprof
  deepcontext export train.dcprof --format speedscope --metric device_time_ns
  deepcontext export train.dcprof --format perfetto      for ui.perfetto.dev
  deepcontext export train.dcprof --format collapsed -o - | flamegraph.pl > flame.svg
  deepcontext export train.dcrun --format parquet        train.HOST.parquet for each host

exit codes:
  0 done, 2 unknown metric, missing file or no kept step, 4 parquet: duckdb is not installed, 5 a file
  is damaged, foreign or too new (the other profiles are written)""",
    )
    parser.option("file", metavar="FILE", help=ANY_PROFILE)
    parser.option("--format", required=True, choices=export.FORMATS, help="format to write")
    parser.option(
        "-o",
        "--output",
        metavar="FILE",
        help="file to write, - for standard output (default: the name of the profile, in the "
        "current folder, with the suffix of the format)",
    )
    add_anonymise_option(parser)
    add_force_option(parser)
    parser.option(
        "--metric",
        action="append",
        metavar="NAME",
        help="metric to export, or NAME.count for the number of its events; may be repeated, except "
        "for collapsed (default: the metric that 'report' orders by; pprof and speedscope: all "
        "summed metrics); not for the other formats",
    )
    window_options(parser, ALL)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Run the command; return the exit code."""
    # Imported here, so that `deepcontext profile` starts the program without loading these modules.
    from deepcontext.profiler.model.anonymous import anonymised  # noqa: PLC0415
    from deepcontext.ui.export import formats  # noqa: PLC0415
    from deepcontext.ui.format import format_bytes  # noqa: PLC0415

    wanted, metrics = formats.format_named(arguments.format), arguments.metric or []
    name = arguments.output or Path(arguments.file).with_suffix(wanted.suffix).name
    output = Output(name, wanted.kind, arguments.force)
    if len(metrics) > 1 and not wanted.holds_many:
        raise UserError(
            f"format '{arguments.format}' has room for one metric, found {len(metrics)}; choose one"
        )
    if wanted.of_profile is not None:
        _refuse_choices(arguments)
    if wanted.of_processes is not None:
        return export_tables(arguments.file, output, wanted, wanted.of_processes)
    profile = of_window(load_one(arguments.file), arguments)
    if arguments.anonymise:
        profile = anonymised(profile)
    output.check([arguments.file])
    exported = formats.export(profile, wanted, metrics)
    for notice in exported.notices:
        print(f"note: {notice}", file=sys.stderr)
    output.write(exported.content)
    if not output.is_stdout:
        size = format_bytes(len(exported.content))
        print(f"written to '{name}', {size}; open it: {wanted.opened_by.format(shlex.quote(name))}")
    return 0


def _refuse_choices(arguments: argparse.Namespace) -> None:
    """Refuse options that a format for whole profiles has no use for."""
    name = arguments.format
    if arguments.metric:
        raise UserError(f"format '{name}' holds no chosen metric; leave out --metric")
    if arguments.window != ALL:
        raise UserError(f"format '{name}' holds whole runs; leave out --window")
    if arguments.anonymise and name == "parquet":
        raise UserError(
            f"format '{name}' is made from whole files; export what 'deepcontext import --anonymise' writes"
        )
