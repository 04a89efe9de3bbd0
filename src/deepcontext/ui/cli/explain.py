"""`deepcontext explain`: print one compact document about a profile, made by `deepcontext.ui.evidence`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from deepcontext.ui.cli.command import Parser
from deepcontext.ui.cli.inputs import (
    ANY_PROFILE,
    chosen_of,
    load_all,
    merged_of_many,
    peaks_option,
)
from deepcontext.ui.known_peaks import with_known_peaks

if TYPE_CHECKING:
    import argparse


def make_parser() -> Parser:
    """Return the parser of the words after the command's name."""
    parser = Parser(
        "deepcontext explain",
        usage="deepcontext explain [options] FILE",
        description="Print one document of at most 12 kB about a profile, for a language model or a "
        "colleague\nwho has not seen the program: what limits it, where the time goes, the costliest "
        "lines with their\nsource, findings, and what is not known. Uses no network.",
        epilog="""\
examples:
  deepcontext explain train.dcprof
  deepcontext explain train.dcprof --json > evidence.json

exit codes:
  0 done, 2 missing file, 5 the file is damaged, foreign or too new""",
    )
    parser.option("file", metavar="FILE", help=ANY_PROFILE)
    parser.option("--json", action="store_true", help="print one JSON object instead of Markdown")
    parser.option(
        "--arguments",
        action="store_true",
        help="include the program's arguments, which may hold secrets",
    )
    parser.option(
        "--process",
        metavar="NAME",
        help="process of a run directory to explain, as for 'deepcontext report'",
    )
    peaks_option(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Run the command; return the exit code."""
    # Imported here, because other commands do not need it.
    from deepcontext.ui.evidence import evidence, to_markdown  # noqa: PLC0415

    merged = None if arguments.process else merged_of_many(arguments.file)
    processes = load_all(arguments.file) if merged is None else []
    profile = merged or chosen_of(processes, arguments.file, process=arguments.process)
    document = evidence(
        with_known_peaks(profile, arguments.peaks), processes, arguments=arguments.arguments
    )
    if arguments.json:
        print(json.dumps(document, indent=1, ensure_ascii=False))
    else:
        print(to_markdown(document), end="")
    return 0
