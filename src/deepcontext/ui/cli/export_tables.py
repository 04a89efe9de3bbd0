"""`deepcontext export` in a format that holds whole processes: a file, or one for each host of a job."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from deepcontext.errors import ProfileDataError, UserError
from deepcontext.profiler.format import run_directory
from deepcontext.ui.cli.output import Output
from deepcontext.ui.cli.readable import Readable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.ui.export.formats import Format


def export_tables(
    source: str,
    output: Output,
    wanted: Format,
    of_processes: Callable[[Iterable[Profile]], bytes],
) -> int:
    """Write the files and return the exit code.

    Args:
        source: a profile or a run directory.
        output: where to write; for a run directory, the host becomes a part of the name.
        wanted: the format.
        of_processes: makes the content.

    Raises:
        UserError: a file cannot be written, or the run directory holds no profile.
        ProfileDataError: no profile can be read.
    """
    from deepcontext.ui.format import format_bytes  # noqa: PLC0415  imports numpy

    readable = Readable()
    outputs = [(_named(output, host), files) for host, files in _hosts(source)]
    for named, files in outputs:
        named.check(files)
    for named, files in outputs:
        content = of_processes(readable.profiles(files))
        named.write(content)
        if not named.is_stdout:
            opened = wanted.opened_by.format(shlex.quote(named.name))
            size = format_bytes(len(content))
            print(f"written to '{named.name}', {size}; open it: {opened}")
    readable.check()
    return ProfileDataError.exit_code if readable.refused else 0


def _hosts(source: str) -> list[tuple[str, Sequence[str]]]:
    """Return for each host its files; the host is "" for a single file."""
    run = Path(source)
    if not run_directory.is_run(run):
        return [("", [source])]
    hosts: dict[str, list[str]] = {}
    for path in run_directory.profiles(run):
        # The program's own profile is beside the directory while the program runs.
        host = path.parent.name if path.parent.parent == run else "program"
        hosts.setdefault(host, []).append(str(path))
    if not hosts:
        raise UserError(f"cannot read '{source}': the run directory holds no profile")
    return sorted(hosts.items())


def _named(output: Output, host: str) -> Output:
    if not host:
        return output
    if output.is_stdout:
        raise UserError(
            "a run directory becomes a file for each host, which standard output cannot hold; name a "
            "file with -o/--output, or one profile"
        )
    path = Path(output.name)
    return Output(
        str(path.with_name(f"{path.stem}.{host}{path.suffix}")), output.kind, output.force
    )
