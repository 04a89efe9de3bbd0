"""`deepcontext merge`: one profile of all ranks of a job (`deepcontext.profiler.merging`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext.errors import UserError
from deepcontext.ui.cli.command import Command, Parser

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
    parser.option("-o", "--output", required=True, metavar="OUTPUT", help="profile to write")
    return parser


def _run(arguments: argparse.Namespace) -> int:
    # Here, not above: `profile` becomes the program in no more time than its own imports take.
    from deepcontext.profiler.merging import merge  # noqa: PLC0415
    from deepcontext.profiler.profile import Profile  # noqa: PLC0415

    output = Path(arguments.output)
    for name in arguments.file:
        if output.exists() and Path(name).exists() and output.samefile(name):
            raise UserError(f"'{output}' is one of the profiles to merge; choose another name")
    merged = merge({name: Profile.load(name) for name in arguments.file})
    merged.save(output)
    print(f"written to '{output}', {merged.run.ranks} ranks; next: deepcontext report {output}")
    return 0


COMMAND: Final = Command("merge", "make one profile of all ranks of a job", _parser, _run)
