"""`deepcontext merge`: one profile for all ranks of a job (`deepcontext.profiler.model.merging`)."""

from __future__ import annotations

import hashlib
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from deepcontext.errors import UserError
from deepcontext.profiler.format import run_directory
from deepcontext.profiler.format.writing import PROFILE
from deepcontext.ui.cli.command import Parser
from deepcontext.ui.cli.inputs import files_of
from deepcontext.ui.cli.merge_joined import MOST_SIDE_BY_SIDE, merge_joined
from deepcontext.ui.cli.output import Output, add_force_option

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from deepcontext.profiler.model.profile import Profile


def make_parser() -> Parser:
    """Return the parser of the words after the command's name."""
    parser = Parser(
        "deepcontext merge",
        usage="deepcontext merge [-o OUTPUT] RUN\n       deepcontext merge -o OUTPUT FILE [FILE ...]",
        description=f"""\
Merge the profiles of all ranks of a job into one profile. Each rank's tree is below a frame
"rank N"; report and page then show sums over the job, the time of each rank, and the lines that
take longer on some ranks than on others.

For more than {MOST_SIDE_BY_SIDE} files, equal call paths of all ranks are joined into one
tree, with the spread over the ranks; such a profile can be merged with others again.""",
        epilog="""\
examples:
  deepcontext merge train.dcrun
  deepcontext report train.dcrun
  deepcontext merge -o job.dcprof rank0.dcprof rank1.dcprof
  deepcontext merge -o job.dcprof --engine processes:8 profiles/
  deepcontext merge --engine dask:tcp://node0:8786 train.dcrun
  mpiexec -n 64 python -m mpi4py.futures -m deepcontext merge --engine mpi train.dcrun

exit codes:
  0 done, 2 missing file, or files of different jobs, 4 workers were killed repeatedly or
  cannot be reached, or an extra is not installed, 5 a file is damaged, foreign or too new (for joined
  ranks, the profile of the other ranks is written)""",
    )
    parser.option(
        "file",
        nargs="+",
        metavar="FILE",
        help="run directory of the job (*.dcrun), folder with profiles, or profile of one rank (*.dcprof)",
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
    parser.option(
        "--joined",
        action="store_true",
        help=f"join equal call paths of all ranks even for {MOST_SIDE_BY_SIDE} files or fewer: for "
        "example on each machine, to merge the results afterwards",
    )
    parser.option(
        "--engine",
        default="processes",
        metavar="ENGINE",
        help="where files are read and joined into one tree: 'processes:N' for N processes of this "
        "machine (default: one for each processor), or workers that are running: 'dask:ADDRESS' or "
        "'dask:FILE.json' (scheduler file), 'ray:ADDRESS' ('ray:auto'; 'ray:local' starts workers), "
        "'mpi' (under 'mpiexec'). Each needs the extra with its name, and workers that can read the files",
    )
    parser.option(
        "--resume",
        metavar="FOLDER",
        help="save partial results of joined ranks in FOLDER, and reuse the results saved there, so that "
        "an interrupted merge continues; the merged files must not change in between",
    )
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Run the command; return the exit code."""
    # Imported here, so that `deepcontext profile` starts the program without loading these modules.
    from deepcontext.profiler.model.job.engines import check_engine  # noqa: PLC0415
    from deepcontext.profiler.model.job.sections import is_job  # noqa: PLC0415
    from deepcontext.profiler.model.merging import merge  # noqa: PLC0415
    from deepcontext.profiler.model.profile import Profile  # noqa: PLC0415  imports numpy

    check_engine(arguments.engine)
    output = Output(arguments.output or _default(arguments.file), PROFILE, arguments.force)
    files = _files_of(arguments.file, output)
    output.check(files)
    is_listed = files == arguments.file
    if arguments.joined or len(files) > MOST_SIDE_BY_SIDE:
        return merge_joined(files, output, arguments, only_ranks=not is_listed)
    profiles = {name: Profile.load(name) for name in files}
    if any(map(is_job, profiles.values())):
        return merge_joined(files, output, arguments, only_ranks=not is_listed)
    _check_distinct(files)
    if not is_listed:
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


def _files_of(names: Sequence[str], output: Output) -> list[str]:
    """Return the files that the words of the command line name; a folder stands for its profiles.

    Raises:
        UserError: a folder holds no profile.
    """
    files = []
    for name in files_of(names):
        if not Path(name).is_dir():
            files.append(name)
            continue
        found = [str(path) for path in Path(name).rglob("*.dcprof") if path.is_file()]
        # The output of an earlier merge may be in the folder.
        found = sorted(path for path in found if not output.is_file(path))
        if not found:
            raise UserError(f"'{name}' holds no profile (*.dcprof); name a folder with profiles")
        files += found
    return files


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
