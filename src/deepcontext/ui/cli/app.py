"""Entry of the command line: find the sub-command, run it, turn errors into exit codes.

Does no work of its own. Invariant: an error raised on purpose is one line on standard error.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deepcontext.errors import DeepContextError, UserError
from deepcontext.ui.cli.command import EXIT_CODES, Command, Parser, nearest
from deepcontext.ui.cli.heap import keep_freed_memory
from deepcontext.ui.cli.streams import (
    ReaderGoneError,
    complain,
    die_of_closed_pipe,
    guarded_streams,
    occupy_closed_descriptors,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


# What they freed would stay with them for as long as they wait.
_SERVERS: Final = frozenset({"view", "mcp"})
# `import` is a keyword.
_MODULES: Final = {"import": "import_file"}


def _command(name: str, summary: str, *, takes_program: bool = False) -> Command:
    """Return the command of the module with its name, which is imported when the command is used."""

    def module() -> Any:
        return importlib.import_module(f"deepcontext.ui.cli.{_MODULES.get(name, name)}")

    return Command(
        name,
        summary,
        lambda: module().make_parser(),
        lambda arguments: module().run(arguments),
        takes_program,
    )


COMMANDS: Final[tuple[Command, ...]] = (
    _command("profile", "run a program and write a profile of it", takes_program=True),
    _command("report", "print where the time of a profile went"),
    _command("analyze", "print what to change in a profiled program"),
    _command("explain", "print one compact document for a colleague or a language model"),
    _command("view", "browse profiles in a browser"),
    _command("diff", "print what changed between two profiles"),
    _command("export", "write a profile for another viewer"),
    _command("query", "ask SQL questions about profiles"),
    _command("import", "read a file of another profiler into a profile"),
    _command("merge", "merge the profiles of all ranks of a job"),
    _command("prune", "remove old runs of a folder"),
    _command("mcp", "answer an agent's questions about profiles"),
    _command("doctor", "what can be measured on this machine"),
    _command("overhead", "what the profiler costs one program", takes_program=True),
)
INTERRUPTED: Final = 130  # 128 + SIGINT, what a shell reports


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line.

    Args:
        argv: words after the program name; the arguments of this process if None.

    Returns:
        the exit code, as listed in the help text.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        with guarded_streams():
            return _run(words)
    except (ReaderGoneError, BrokenPipeError):  # BrokenPipeError: from a pipe named with -o
        return die_of_closed_pipe()
    except DeepContextError as error:
        _print_error(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001  the outermost edge
        _print_error(
            f"{type(error).__name__} is a bug of deepcontext; report it with the lines above",
            traceback.format_exc(),
        )
        return DeepContextError.exit_code


def build_parser() -> Parser:
    """Return the parser of the words before the sub-command."""
    commands = "\n".join(f"  {command.name:<10}{command.summary}" for command in COMMANDS)
    parser = Parser(
        "deepcontext",
        usage="deepcontext [-h] [--version] COMMAND ...",
        description="Profile deep-learning programs: one calling context tree of bounded size through "
        "every layer.",
        epilog=f"""\
commands:
{commands}

examples:
  deepcontext profile train.py --epochs 1     run a script and print where its time goes
  deepcontext report train.dcprof             print the report again, with more detail
  deepcontext doctor                          what can be measured on this machine
  deepcontext COMMAND --help                  options and examples of one command

{EXIT_CODES}
'profile' ends with the exit code of the program.""",
    )
    parser.option("--version", action="store_true", help="print the version and exit")
    return parser


def _run(words: list[str]) -> int:
    parser = build_parser()
    if not words:
        parser.print_help(sys.stderr)
        return UserError.exit_code
    words = _as_options(words)
    if words[0].startswith("-"):
        return _run_options(parser, words)
    for command in COMMANDS:
        if command.name == words[0]:
            if not command.takes_program:
                occupy_closed_descriptors()
                if command.name not in _SERVERS:
                    keep_freed_memory()
            try:
                return command.main(words[1:])
            except SystemExit as stop:  # argparse exits after it has printed a help text
                return int(stop.code or 0)
    raise UserError(_unknown_command(words[0]))


def _as_options(words: list[str]) -> list[str]:
    """Return ``help``, ``help COMMAND`` and ``version`` as the equivalent options."""
    match words:
        case ["help"]:
            return ["--help"]
        case ["help", command]:
            return [command, "--help"]
        case ["version"]:
            return ["--version"]
    return words


def _run_options(parser: Parser, words: list[str]) -> int:
    try:
        arguments = parser.parse(words)
    except SystemExit as stop:
        return int(stop.code or 0)
    if arguments.version:
        from deepcontext import __version__  # noqa: PLC0415  the native core knows it

        print(f"deepcontext {__version__}")
        return 0
    raise UserError("no command given; see 'deepcontext --help'")


def _unknown_command(word: str) -> str:
    names = [command.name for command in COMMANDS]
    if Path(word).suffix == ".py" or Path(word).is_file():
        hint = f", did you mean 'deepcontext profile {word}'"
    else:
        hint = nearest(word, names)
    return f"unknown command '{word}'{hint}; commands are {', '.join(names)}"


def _print_error(message: str, before: str = "") -> None:
    complain(f"{before}error: {message}\n")
