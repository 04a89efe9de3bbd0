"""`deepcontext export`: write a profile in another viewer's format (`deepcontext.ui.export`)."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext.errors import UserError
from deepcontext.ui.cli.command import Command, Parser

if TYPE_CHECKING:
    import argparse

# Known here, too: the words of a command line are read without importing what does the work.
_FORMATS: Final = ("pprof", "speedscope", "collapsed")
_STANDARD_OUTPUT: Final = "-"


def _parser() -> Parser:
    parser = Parser(
        "deepcontext export",
        usage="deepcontext export [options] --format FORMAT FILE",
        description="""\
Write a profile in the format of another viewer: pprof, speedscope, or collapsed stacks
(flamegraph.pl, Perfetto). They show call paths and what adds up over them; maxima,
distributions, findings and the trust report are for 'deepcontext view'.""",
        epilog="""\
examples:
  deepcontext export train.dcprof --format pprof
  deepcontext export train.dcprof --format speedscope --metric device_time_ns
  deepcontext export train.dcprof --format collapsed -o - | flamegraph.pl > flame.svg

exit codes:
  0 done, 2 unknown metric or missing file, 5 the file is damaged, foreign or too new""",
    )
    parser.option("file", metavar="FILE", help="profile to read (*.dcprof)")
    parser.option("--format", required=True, choices=_FORMATS, help="format to write")
    parser.option(
        "-o",
        "--output",
        metavar="FILE",
        help="file to write, - for standard output (default: the name of the profile, in the "
        "current folder, with the suffix of the format)",
    )
    parser.option(
        "--metric",
        action="append",
        metavar="NAME",
        help="metric to export, or NAME.count for the number of its events; may be repeated, but "
        "not for collapsed (default: the first the page shows; of pprof and speedscope all that "
        "add up)",
    )
    return parser


def _run(arguments: argparse.Namespace) -> int:
    # Here, not above: `profile` becomes the program in no more time than its own imports take.
    from deepcontext.profiler.profile import Profile  # noqa: PLC0415
    from deepcontext.ui.export import FORMATS, export  # noqa: PLC0415
    from deepcontext.ui.format import format_bytes  # noqa: PLC0415

    wanted, metrics = FORMATS[arguments.format], arguments.metric or []
    if len(metrics) > 1 and not wanted.holds_many:
        raise UserError(
            f"format '{arguments.format}' has room for one metric, found {len(metrics)}; choose one"
        )
    profile = Profile.load(arguments.file)
    exported = export(profile, wanted, metrics)
    for notice in exported.notices:
        print(f"note: {notice}", file=sys.stderr)
    if arguments.output == _STANDARD_OUTPUT:
        sys.stdout.buffer.write(exported.content)
        sys.stdout.buffer.flush()
        return 0
    name = arguments.output or Path(arguments.file).with_suffix(wanted.suffix).name
    _write(exported.content, name, arguments.file)
    size = format_bytes(len(exported.content))
    print(f"written to '{name}', {size}; open it: {wanted.opened_by.format(name)}")
    return 0


def _write(content: bytes, name: str, source: str) -> None:
    from deepcontext.profiler import wire  # noqa: PLC0415  as above

    where = Path(name)
    if where.exists() and where.samefile(source):
        raise UserError(f"'{name}' is the profile itself; choose another name with -o")
    try:
        if where.is_dir() or where.is_file() or not where.exists():
            wire.write_file(content, Path(os.path.realpath(where)))
        else:
            where.write_bytes(content)  # a pipe or a device
    except OSError as error:
        raise UserError(
            f"cannot write '{where}': {error.strerror}; choose a file in a folder that exists and "
            "may be written to"
        ) from error


COMMAND: Final = Command("export", "write a profile for another viewer", _parser, _run)
