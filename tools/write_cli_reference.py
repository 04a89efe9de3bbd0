"""Write docs/reference/cli.md from the command line's own parsers.

usage: python tools/write_cli_reference.py [--check]

With --check nothing is written, and the exit code is 1 when the page is not up to date.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from deepcontext.ui.cli.app import COMMANDS, build_parser

if TYPE_CHECKING:
    import argparse

    from deepcontext.ui.cli.command import Parser

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "cli.md"


def reference() -> str:
    """Return the text of the page."""
    parts = [
        "# Command line",
        "<!-- written by tools/write_cli_reference.py; change the parsers and run it again -->",
        _section(build_parser()),
    ]
    for command in COMMANDS:
        parser = command.parser()
        parts += [f"## {parser.prog}", _section(parser)]
    return "\n\n".join(parts) + "\n"


def _section(parser: Parser) -> str:
    usage = (parser.usage or "").replace("\n       ", "\n")
    options = "".join(f"\n{_row(action)}" for action in parser.actions)
    return "\n\n".join([
        f"```text\n{usage}\n```",
        parser.description or "",
        f"| option | meaning |\n|---|---|{options}\n| `-h`, `--help` | print the help text |",
        f"```text\n{parser.epilog}\n```",
    ])


def _row(action: argparse.Action) -> str:
    names = action.option_strings or [str(action.metavar)]
    # As argparse prints it where no name for the value is given: the choices.
    shown = action.metavar or f"{{{','.join(map(str, action.choices or ()))}}}"
    value = f" {shown}" if action.option_strings and action.nargs != 0 else ""
    label = ", ".join(f"`{name}{value}`" for name in names)
    return f"| {label} | {str(action.help).replace('%%', '%')} |"


def main() -> int:
    """Write the page, or compare it."""
    text = reference()
    if "--check" not in sys.argv[1:]:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{PAGE} is not up to date; run: python {sys.argv[0]}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
