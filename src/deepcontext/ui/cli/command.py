"""What a sub-command is, and how the words of a command line become its arguments.

Does not know which sub-commands exist (`app.py` lists them). Invariant: the program's name and all
words after it belong to the program and are never parsed.
"""

from __future__ import annotations

import argparse
import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from deepcontext.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

EXIT_CODES = """\
exit codes:
  0   done
  2   the request is invalid (unknown option, missing file, ...)
  3   a requested limit is exceeded (overhead or diff --max-ratio, analyze --fail-on)
  4   this machine or an installed package lacks something that was requested, or a file or
      standard output cannot be written (full disk, closed stream)
  5   a profile file is damaged, foreign, or written by a newer version
  70  a bug of deepcontext
  130 interrupted from the keyboard
  141 the reader of standard output has ended (SIGPIPE), as 'head' does"""


class Parser(argparse.ArgumentParser):
    """An argument parser that raises `UserError` and that never guesses an abbreviated option."""

    def __init__(self, prog: str, *, usage: str, description: str, epilog: str) -> None:
        super().__init__(
            prog,
            usage=usage,
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self.actions: list[argparse.Action] = []

    def option(self, *names: str, **settings: object) -> None:
        """Add an argument; `settings` are the parameters of `argparse.ArgumentParser.add_argument`."""
        self.actions.append(self.add_argument(*names, **settings))  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        """Raise instead of ending the process."""
        raise UserError(f"{message}; see '{self.prog} --help'")

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """Parse all of `words`.

        Raises:
            UserError: a word is unknown; the message names the nearest option.
        """
        arguments, unknown = self.parse_known_args(words)
        if unknown:
            names = [name for action in self.actions for name in action.option_strings]
            kind = "option" if unknown[0].startswith("-") else "argument"
            self.error(f"unknown {kind} '{unknown[0]}'{nearest(unknown[0], names)}")
        return arguments

    def split_program(self, words: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
        """Split `words` where the profiled program begins.

        Returns:
            the words for this parser, and the words for the interpreter (`Program.arguments`), which
            are empty if no program is named.
        """
        with_value = {
            name for action in self.actions if action.nargs != 0 for name in action.option_strings
        } - {"-m", "-c"}
        index = 0
        while index < len(words):
            word = words[index]
            if word == "--":
                return list(words[:index]), self._checked(words[index + 1 :])
            if word == "-" or not word.startswith("-") or word[:2] in {"-m", "-c"}:
                return list(words[:index]), self._checked(words[index:])
            index += 2 if word in with_value else 1
        return list(words), ()

    def _checked(self, program: Sequence[str]) -> tuple[str, ...]:
        if len(program) == 1 and program[0] in {"-m", "-c"}:
            expected = "the name of a module" if program[0] == "-m" else "a piece of code"
            self.error(f"option {program[0]}: expected {expected} after it")
        return tuple(program)


@dataclass(frozen=True, slots=True)
class Command:
    """One sub-command.

    Attributes:
        name: the word that selects it.
        summary: one line for the list of sub-commands.
        parser: makes the parser of the sub-command.
        run: runs the sub-command with the parsed arguments; returns the exit code.
        takes_program: whether the words end with a program and its arguments, which `run`
            receives as `arguments.program`, a tuple of words.
    """

    name: str
    summary: str
    parser: Callable[[], Parser]
    run: Callable[[argparse.Namespace], int]
    takes_program: bool = False

    def main(self, words: Sequence[str]) -> int:
        """Parse `words` and run."""
        parser = self.parser()
        if not self.takes_program:
            return self.run(parser.parse(words))
        options, program = parser.split_program(words)
        arguments = parser.parse(options)
        if not program:
            parser.error("no program given: expected a script, -m MODULE or -c CODE")
        arguments.program = program
        return self.run(arguments)


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ``", did you mean 'x'"`` for the known word most like `word`, or ""."""
    close = difflib.get_close_matches(word.partition("=")[0], list(known), n=1)
    return f", did you mean '{close[0]}'" if close else ""


def positive_int(text: str) -> int:
    """Return `text` as a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, found '{text}'")
    return int(text)


def positive_float(text: str) -> float:
    """Return `text` as a finite number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number above 0, found '{text}'")
    return value
