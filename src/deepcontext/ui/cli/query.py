"""`deepcontext query`: SQL over profiles, in an embedded database (`deepcontext.ui.sql`)."""

from __future__ import annotations

import csv
import json
import math
import sys
from typing import TYPE_CHECKING, Any

from deepcontext.errors import ProfileDataError, UserError
from deepcontext.ui.cli.command import Parser
from deepcontext.ui.cli.inputs import files_of
from deepcontext.ui.cli.readable import Readable
from deepcontext.ui.cli.windows import ALL, of_window, window_options

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


def make_parser() -> Parser:
    """Return the parser of the words after the command's name."""
    parser = Parser(
        "deepcontext query",
        usage="deepcontext query [options] SQL FILE [FILE ...]",
        description="""\
Ask SQL questions about profiles, in the dialect of DuckDB (needs the extra 'sql'):
  costs      a row for each metric of each call path: profile, host, rank, pid, node, parent, depth,
             kind, name, file, line, phase, path, metric, unit, aggregation, count, exclusive,
             inclusive, least, most
  processes  a row for each profile: profile, host, rank, ranks, pid, parent_pid, wall_ns, ...
Add up 'exclusive' of one metric, because 'inclusive' contains the call paths below. The SQL can
neither read other files nor write files.""",
        epilog="""\
examples:
  deepcontext query "SELECT metric, unit, sum(exclusive) FROM costs GROUP BY ALL" train.dcprof
  deepcontext query --csv "SELECT rank, wall_ns FROM processes ORDER BY rank" train.dcrun

exit codes:
  0 done, 2 the SQL is invalid, or a file is missing, 4 duckdb is not installed, 5 a file is damaged,
  foreign or too new (the SQL runs over the other profiles)""",
    )
    parser.option("sql", metavar="SQL", help='what to ask, for example "SELECT * FROM processes"')
    parser.option(
        "file",
        nargs="+",
        metavar="FILE",
        help="profile (*.dcprof), or run directory of a job (*.dcrun) for all its processes",
    )
    parser.option(
        "--json", action="store_true", help="print a JSON list with an object for each row"
    )
    parser.option("--csv", action="store_true", help="print comma-separated values with a header")
    window_options(parser, ALL)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Run the command; return the exit code."""
    from deepcontext.ui.sql.database import Database  # noqa: PLC0415  imports numpy
    from deepcontext.ui.sql.tables import Tables  # noqa: PLC0415

    if arguments.json and arguments.csv:
        raise UserError("--json and --csv exclude each other; choose one")
    readable = Readable()
    with Database() as database:
        tables = Tables(database)
        for profile in readable.profiles(files_of(arguments.file)):
            tables.add(of_window(profile, arguments))
        readable.check()
        names, rows = database.ask(arguments.sql)
    if arguments.json:
        _print_json(names, rows)
    elif arguments.csv:
        csv.writer(sys.stdout, lineterminator="\n").writerows([names, *rows])
    else:
        _print_table(names, rows)
    return ProfileDataError.exit_code if readable.refused else 0


def _print_json(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    content = [dict(zip(names, map(_json_value, row), strict=True)) for row in rows]
    print(json.dumps(content, indent=2, default=str, allow_nan=False))


def _json_value(value: Any) -> Any:
    """Return a value that JSON has; it has no NaN and no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _print_table(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Print aligned columns, numbers to the right; nothing is shortened."""
    cells = [[_text(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    to_right = [
        all(isinstance(value, int | float | None) for value in column)
        for column in (zip(*rows, strict=True) if rows else [()] * len(names))
    ]
    for line in (names, *cells):
        aligned = [
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, to_right, strict=True)
        ]
        print("  ".join(aligned).rstrip())


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    return " ".join(str(value).split())
