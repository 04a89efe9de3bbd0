"""`deepcontext merge`: one profile for all ranks of a job (`deepcontext.profiler.model.job`)."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext.errors import ProfileDataError, UserError
from deepcontext.profiler.format import run_directory
from deepcontext.profiler.format.writing import PROFILE
from deepcontext.ui.cli.command import Parser
from deepcontext.ui.cli.inputs import files_of
from deepcontext.ui.cli.output import Output, add_force_option

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence

    from deepcontext.profiler.model.job.loading import Refused

_MOST_NAMED: Final = 5


def make_parser() -> Parser:
    """Return the parser of the words after the command's name."""
    parser = Parser(
        "deepcontext merge",
        usage="deepcontext merge [-o OUTPUT] RUN\n       deepcontext merge -o OUTPUT FILE [FILE ...]",
        description="""\
Merge the profiles of all ranks of a job into one profile: equal call paths are one path. Report
and page then show sums over the job, the times of each rank, and the lines that take longer on some
ranks than on others. A merged profile can be merged with others again.""",
        epilog="""\
examples:
  deepcontext merge train.dcrun
  deepcontext report train.dcrun
  deepcontext merge -o job.dcprof rank0.dcprof rank1.dcprof
  deepcontext merge -o job.dcprof --engine processes:8 profiles/
  deepcontext merge --engine dask:tcp://node0:8786 train.dcrun
  mpiexec -n 64 python -m mpi4py.futures -m deepcontext merge --engine mpi train.dcrun

exit codes:
  0 done, 2 no file can be read, or files of different jobs, 4 workers were killed repeatedly or
  cannot be reached, or an extra is not installed, 5 a file is missing, damaged, foreign or too new
  (the profile of the other ranks is written)""",
    )
    parser.option(
        "file",
        nargs="+",
        metavar="FILE",
        help="run directory of the job (*.dcrun), folder with profiles, profile of one rank (*.dcprof), or "
        "the same of another tool: traces, or a folder of traces",
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
        "--engine",
        default="processes",
        metavar="ENGINE",
        help="where files are read and joined: 'processes:N' for N processes of this "
        "machine (default: one for each processor), or workers that are running: 'dask:ADDRESS' or "
        "'dask:FILE.json' (scheduler file), 'ray:ADDRESS' ('ray:auto'; 'ray:local' starts workers), "
        "'mpi' (under 'mpiexec'). Each needs the extra with its name, and workers that can read the files",
    )
    parser.option(
        "--resume",
        metavar="FOLDER",
        help="save partial results in FOLDER, and reuse the results saved there, so that "
        "an interrupted merge continues; the merged files must not change in between",
    )
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Run the command; return the exit code."""
    from deepcontext.profiler.importing.opening import as_profiles  # noqa: PLC0415  imports numpy

    output = Output(arguments.output or _default(arguments.file), PROFILE, arguments.force)
    files = _files_of(arguments.file, output)
    output.check(files)
    with as_profiles(files) as profiles:
        return _merge(arguments, profiles, output)


def _merge(arguments: argparse.Namespace, files: list[str], output: Output) -> int:
    # Imported here, so that `deepcontext profile` starts the program without loading these modules.
    from deepcontext.profiler.model.job.artifact import profile_of  # noqa: PLC0415
    from deepcontext.profiler.model.job.choosing import choose  # noqa: PLC0415
    from deepcontext.profiler.model.job.engines import engine_of  # noqa: PLC0415
    from deepcontext.profiler.model.job.fold import fold, tasks_of  # noqa: PLC0415

    engine = engine_of(arguments.engine, tasks_of(len(files)))
    refused: tuple[Refused, ...] = ()
    names: Sequence[str] = files
    with engine:
        if files != arguments.file:  # a folder also holds other processes and earlier attempts
            chosen = choose(files, engine)
            names, refused = chosen.names, chosen.refused
            _tell_left_out({
                "processes that are not ranks": chosen.others,
                "ranks of earlier attempts": chosen.earlier,
            })
        progress = _progress(len(names))
        folded = fold(
            names,
            engine,
            unrelated=arguments.unrelated,
            keep=_folder(arguments.resume),
            on_progress=progress,
        )
    if engine.restarts:
        print(
            f"[deepcontext] {engine.restarts} worker processes were killed; their files were read again",
            file=sys.stderr,
        )
    refused += folded.refused
    _tell_refused(refused)
    notes = _notes(refused, len(files))
    output.write(profile_of(folded.part, notes=notes).to_bytes())
    if not output.is_stdout:
        next_ = f"deepcontext report {shlex.quote(output.name)}"
        ranks = f"{len(folded.part.rows):,}"
        print(f"written to '{output.name}', {ranks} ranks; next: {next_}")
    return ProfileDataError.exit_code if refused else 0


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


def _folder(name: str | None) -> str:
    """Return the folder of partial results, made where it is missing; "" for none.

    Raises:
        UserError: the folder cannot be made.
    """
    if name is None:
        return ""
    try:
        Path(name).mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise UserError(
            f"cannot make the folder '{name}' for --resume: {error}; name a folder that may be written to"
        ) from error
    return name


def _progress(total: int) -> Callable[[int], None]:
    """Return a function that shows the number of files done, on a terminal."""
    if not sys.stderr.isatty():
        return lambda _: None

    def show(done: int) -> None:
        text = f"[deepcontext] merging: {done:,} of {total:,} profiles"
        end = "\n" if done == total else ""
        print(f"\r{text}", end=end, file=sys.stderr, flush=True)

    return show


def _tell_left_out(counts: Mapping[str, int]) -> None:
    left_out = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    if left_out:
        print(f"[deepcontext] left out: {left_out}", file=sys.stderr)


def _tell_refused(refused: Sequence[Refused]) -> None:
    for each in refused[:_MOST_NAMED]:
        print(f"[deepcontext] left out: {each.reason}", file=sys.stderr)
    more = len(refused) - _MOST_NAMED
    if more > 0:
        print(f"[deepcontext] left out: {more:,} more files that cannot be read", file=sys.stderr)


def _notes(refused: Sequence[Refused], files: int) -> list[str]:
    if not refused:
        return []
    names = ", ".join(f"'{each.name}'" for each in refused[:_MOST_NAMED])
    more = ", ..." if len(refused) > _MOST_NAMED else ""
    return [f"{len(refused):,} of {files:,} files could not be read: {names}{more}"]
