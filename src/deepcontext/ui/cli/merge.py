"""`deepcontext merge`: one profile for all ranks of a job (`deepcontext.profiler.model.merging`)."""

from __future__ import annotations

import hashlib
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext.errors import UserError
from deepcontext.profiler.format import run_directory
from deepcontext.profiler.format.writing import PROFILE
from deepcontext.ui.cli.command import Command, Parser
from deepcontext.ui.cli.inputs import files_of
from deepcontext.ui.cli.output import Output, add_force_option

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from deepcontext.profiler.model.profile import Profile


def _parser() -> Parser:
    parser = Parser(
        "deepcontext merge",
        usage="deepcontext merge [-o OUTPUT] RUN\n       deepcontext merge -o OUTPUT FILE FILE [FILE ...]",
        description="""\
Merge the profiles of all ranks of a job into one profile. Each rank's tree is below a frame
"rank N"; report and page then show sums over the job, the time of each rank, and the lines that
take some ranks longer than others.""",
        epilog="""\
examples:
  deepcontext merge train.dcrun
  deepcontext report train.dcrun
  deepcontext merge -o job.dcprof rank0.dcprof rank1.dcprof

exit codes:
  0 done, 2 missing file, or files of different jobs, 5 a file is damaged, foreign or too new""",
    )
    parser.option(
        "file",
        nargs="+",
        metavar="FILE",
        help="run directory of the job (*.dcrun), or profile of one rank (*.dcprof)",
    )
    parser.option(
        "-o",
        "--output",
        metavar="OUTPUT",
        help="profile to write, - for standard output (default for a run directory: "
        f"{run_directory.MERGED} in it, which 'report' and other commands then use)",
    )
    add_force_option(parser)
    parser.option(
        "--unrelated",
        action="store_true",
        help="also merge profiles that do not seem to belong to one job, because the programs or the "
        "start times differ",
    )
    return parser


def _run(arguments: argparse.Namespace) -> int:
    # Imported here, so that `deepcontext profile` starts the program without loading these modules.
    from deepcontext.profiler.model.merging import merge  # noqa: PLC0415
    from deepcontext.profiler.model.profile import Profile  # noqa: PLC0415  imports numpy

    output = Output(arguments.output or _default(arguments.file), PROFILE, arguments.force)
    files = files_of(arguments.file)
    output.check(files)
    profiles = {name: Profile.load(name) for name in files}
    _check_distinct(files)
    if files != arguments.file:
        profiles = _ranks_of(profiles)
    merged = merge(profiles, unrelated=arguments.unrelated)
    output.write(merged.to_bytes())
    if not output.is_stdout:
        next_ = f"deepcontext report {shlex.quote(output.name)}"
        print(f"written to '{output.name}', {merged.run.ranks} ranks; next: {next_}")
    return 0


def _default(names: Sequence[str]) -> str:
    """Return the output for a single run directory.

    Raises:
        UserError: something else is merged.
    """
    if len(names) > 1 or not run_directory.is_run(names[0]):
        raise UserError("name the profile to write with -o/--output")
    return str(Path(names[0]) / run_directory.MERGED)


def _ranks_of(profiles: dict[str, Profile]) -> dict[str, Profile]:
    """Return the profiles of ranks in their last attempt, or all profiles if none has a rank.

    A run directory also holds the launcher and the workers of a data loader, which are not ranks.
    """
    from deepcontext.profiler.model.job_ranks import last_attempt, ranks_of  # noqa: PLC0415

    ranks = ranks_of(profiles)
    last = last_attempt(ranks)
    counts = {
        "processes that are not ranks": len(profiles) - len(ranks),
        "ranks of earlier attempts": len(ranks) - len(last),
    }
    left_out = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    if ranks and left_out:
        print(f"[deepcontext] left out: {left_out}", file=sys.stderr)
    return last or profiles


def _check_distinct(names: Sequence[str]) -> None:
    """Refuse duplicate profiles (named twice, or copied), because they would count twice.

    Raises:
        UserError: two profiles are the same; the message names both.
    """
    known: dict[bytes, str] = {}
    for name in names:
        content = hashlib.sha256(Path(name).read_bytes()).digest()
        if content in known:
            raise UserError(
                f"'{known[content]}' and '{name}' are the same profile, which would count twice; "
                "name each profile once"
            )
        known[content] = name


COMMAND: Final = Command("merge", "merge the profiles of all ranks of a job", _parser, _run)
