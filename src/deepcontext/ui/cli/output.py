"""Shared by commands that write a file: `--force`, `-` for standard output, the check in advance.

`deepcontext.profiler.format.writing` writes the file and decides what may be replaced.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext.errors import UserError
from deepcontext.profiler.format import writing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.format.writing import FileKind
    from deepcontext.ui.cli.command import Parser

STANDARD_OUTPUT: Final = "-"


def add_force_option(parser: Parser) -> None:
    """Add `--force`."""
    parser.option(
        "--force",
        action="store_true",
        help="replace the output file whatever its content; without --force, only an older file of "
        "the same kind is replaced",
    )


def add_anonymise_option(parser: Parser) -> None:
    """Add `--anonymise`."""
    parser.option(
        "--anonymise",
        action="store_true",
        help="write tokens for the program's own folders and files, and for users, hosts, jobs and "
        "command lines, and leave source text out; names of functions, modules and ranges stay",
    )


@dataclass(frozen=True, slots=True)
class Output:
    """Where a command writes its file.

    Attributes:
        name: file name as the user typed it; "-" for standard output.
        kind: kind of the file.
        force: whether to replace a file of any kind.
    """

    name: str
    kind: FileKind
    force: bool

    @property
    def is_stdout(self) -> bool:
        """Whether the content goes to standard output, where no message may be mixed with it."""
        return self.name == STANDARD_OUTPUT or writing.descriptor_of(self.name) == 1

    def is_file(self, path: str) -> bool:
        """Return whether `path` is the file that the command writes."""
        return not self.is_stdout and _is_same(self.name, path)

    def check(self, sources: Sequence[str]) -> None:
        """Check that the file can be written, before the command does its work.

        Args:
            sources: files that the command reads.

        Raises:
            UserError: the file cannot or may not be written, or is one of the sources.
            EnvironmentProblem: the machine fails to write there.
        """
        if self.is_stdout:
            return
        if any(_is_same(self.name, source) for source in sources):
            raise UserError(
                f"cannot write '{self.name}': the file is an input of this command; choose another name"
            )
        writing.check(self.name, self.kind, force=self.force)

    def write(self, content: bytes) -> None:
        """Write the content.

        Raises:
            UserError: the file cannot or may not be written.
            EnvironmentProblem: the machine failed to write.
        """
        if self.is_stdout:
            sys.stdout.flush()
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()
        else:
            writing.write(content, self.name, self.kind, force=self.force)


def _is_same(name: str, source: str) -> bool:
    try:
        return Path(name).samefile(source)
    except (OSError, ValueError):
        return False  # a file is missing or a name is invalid: opening the file reports that
