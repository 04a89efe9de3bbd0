"""The options of a session as options of a command line.

`profile`, `overhead` and the notebook's magic share them, so that `overhead` measures with
the settings of a profile. `recording/options.py` declares the options.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from deepcontext.profiler.recording.option_rules import NotAllowedError
from deepcontext.profiler.recording.options import OPTIONS, SessionOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext.profiler.recording.options import Option
    from deepcontext.ui.cli.command import Parser


def add_session_options(parser: Parser) -> None:
    """Add the options that shape a session."""
    for option in OPTIONS:
        meaning = option.meaning.replace("%", "%%")  # argparse formats the text with "%"
        if isinstance(option.default, bool):
            parser.option(
                word_of(option),
                dest=option.name,
                action="store_false" if option.default else "store_true",
                help=f"do not {meaning}" if option.default else meaning,
            )
        else:
            parser.option(
                word_of(option),
                type=_reader(option),
                default=option.default,
                metavar=option.placeholder,
                help=f"{meaning} (default: {_shown(option.default)})",
            )


def add_program_options(parser: Parser) -> None:
    """Add the options that name a program."""
    parser.option(
        "-m", dest="module", metavar="MODULE", help="run a module, as 'python -m MODULE' does"
    )
    parser.option("-c", dest="code", metavar="CODE", help="run CODE, as 'python -c CODE' does")


def session_options(arguments: argparse.Namespace) -> SessionOptions:
    """Return the session options of a parsed command line."""
    return SessionOptions.of({option.name: getattr(arguments, option.name) for option in OPTIONS})


def word_of(option: Option) -> str:
    """Return the option's spelling on the command line: ``--cpu-rate``, ``--no-memory``."""
    negation = "no-" if option.default is True else ""
    return f"--{negation}{option.name.replace('_', '-')}"


def _reader(option: Option) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return option.rule.read_text(text)
        except NotAllowedError as problem:
            raise argparse.ArgumentTypeError(str(problem)) from None

    return read


def _shown(default: float | tuple[str, ...]) -> str:
    if isinstance(default, tuple):
        return ",".join(default) or "none"
    return str(int(default)) if default == int(default) else str(default)
