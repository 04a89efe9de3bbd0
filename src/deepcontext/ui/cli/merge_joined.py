"""`deepcontext merge` of many ranks: their trees joined into one (`profiler.model.job`)."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext.errors import ProfileDataError, UserError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence

    from deepcontext.profiler.model.job.loading import Refused
    from deepcontext.ui.cli.output import Output

MOST_SIDE_BY_SIDE: Final = 64
_MOST_NAMED: Final = 5


def merge_joined(
    files: Sequence[str], output: Output, arguments: argparse.Namespace, *, only_ranks: bool
) -> int:
    """Write one tree of all ranks and return the exit code.

    Args:
        files: profiles of single ranks, or of ranks joined before.
        output: where to write.
        arguments: the command line, with `engine`, `resume` and `unrelated`.
        only_ranks: leave out other processes and earlier attempts; otherwise they are an error.
    """
    from deepcontext.profiler.model.job.artifact import profile_of  # noqa: PLC0415  imports numpy
    from deepcontext.profiler.model.job.choosing import choose  # noqa: PLC0415
    from deepcontext.profiler.model.job.engines import engine_of  # noqa: PLC0415
    from deepcontext.profiler.model.job.fold import fold, tasks_of  # noqa: PLC0415

    engine = engine_of(arguments.engine, tasks_of(len(files)))
    refused: tuple[Refused, ...] = ()
    names = files
    with engine:
        if only_ranks:
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
        print(f"written to '{output.name}', {ranks} ranks joined; next: {next_}")
    return ProfileDataError.exit_code if refused else 0


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
