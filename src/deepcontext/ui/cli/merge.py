"""`deepcontext merge`: one profile of all ranks of a job (`deepcontext.profiler.merging`)."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.writing import PROFILE
from deepcontext.ui.cli.command import Command, Parser
from deepcontext.ui.cli.output import Output, add_force_option

if TYPE_CHECKING:
    import argparse


def _parser() -> Parser:
    parser = Parser(
        "deepcontext merge",
        usage="deepcontext merge -o OUTPUT FILE FILE [FILE ...]",
        description="""\
Make one profile of those of all ranks of a job. Each rank's tree stands below a frame "rank N";
report and page then show sums over the job, which rank did what, and the lines that take some
ranks longer than others.""",
        epilog="""\
examples:
  deepcontext merge -o job.dcprof train.rank*.dcprof
  deepcontext report job.dcprof

exit codes:
  0 done, 2 missing file, or files that are not of one job, 5 a file is damaged, foreign or too new""",
    )
    parser.option("file", nargs="+", metavar="FILE", help="profile of one rank (*.dcprof)")
    parser.option(
        "-o",
        "--output",
        required=True,
        metavar="OUTPUT",
        help="profile to write, - for standard output",
    )
    add_force_option(parser)
    return parser


def _run(arguments: argparse.Namespace) -> int:
    # Here, not above: `profile` becomes the program in no more time than its own imports take.
    from deepcontext.profiler.merging import merge  # noqa: PLC0415
    from deepcontext.profiler.profile import Profile  # noqa: PLC0415

    output = Output(arguments.output, PROFILE, arguments.force)
    output.check(arguments.file)
    merged = merge({name: Profile.load(name) for name in arguments.file})
    output.write(merged.to_bytes())
    if not output.is_stdout:
        next_ = f"deepcontext report {shlex.quote(output.name)}"
        print(f"written to '{output.name}', {merged.run.ranks} ranks; next: {next_}")
    return 0


COMMAND: Final = Command("merge", "make one profile of all ranks of a job", _parser, _run)
