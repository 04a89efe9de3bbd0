"""`deepcontext prune`: remove old runs of a folder (`deepcontext.profiler.model.retention`)."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext.errors import UserError
from deepcontext.profiler.format import run_directory
from deepcontext.profiler.model import retention
from deepcontext.ui.cli.command import Parser
from deepcontext.ui.format import format_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepcontext.profiler.model.retention import Stored

_SECONDS: Final = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_BYTES: Final = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def make_parser() -> Parser:
    """Return the parser of the words after the command's name."""
    parser = Parser(
        "deepcontext prune",
        usage="deepcontext prune [--older-than AGE] [--beyond SIZE] [--dry-run] FOLDER",
        description="""\
Remove old runs (*.dcrun) and profiles (*.dcprof) that lie in a folder, for programs that are recorded
again and again. The oldest go first. A run is kept, whatever its age, if a process of it runs or may be
running on another machine, or if it was written in the last 15 minutes.""",
        epilog="""\
examples:
  deepcontext prune --older-than 30d --beyond 20GB runs/
  deepcontext prune --beyond 5GB --dry-run .

exit codes:
  0 done, 2 no limit is given, or the folder is missing""",
    )
    parser.option("folder", metavar="FOLDER", help="folder with run directories and profiles")
    parser.option(
        "--older-than",
        type=_age,
        metavar="AGE",
        help="remove runs that were last written longer ago: 90m, 12h, 30d, 8w",
    )
    parser.option(
        "--beyond",
        type=_size,
        metavar="SIZE",
        help="remove the oldest runs until the others take no more: 500MB, 20GB",
    )
    parser.option(
        "--dry-run", action="store_true", help="print what would be removed, remove nothing"
    )
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Remove, and print a line for each run that is removed or kept against a limit."""
    folder = Path(arguments.folder)
    limits = {"older_than_s": arguments.older_than, "beyond_bytes": arguments.beyond}
    if all(limit is None for limit in limits.values()):
        raise UserError(
            "no limit given; see --older-than and --beyond in 'deepcontext prune --help'"
        )
    if not folder.is_dir():
        raise UserError(
            f"cannot read '{folder}': it is no folder; name the folder that holds the runs"
        )
    runs = retention.stored(folder)
    leaving = retention.removable(runs, **limits)
    would_leave = retention.removable([_as_ended(each) for each in runs], **limits)
    named = {each.path for each in would_leave} - {each.path for each in leaving}
    for each in leaving:
        if not arguments.dry_run and not _remove(each):
            continue
        verb = "would remove" if arguments.dry_run else "removed"
        print(f"{verb} {each.path} ({format_bytes(each.size_bytes)})")
    for each in runs:
        if each.path in named and each.kept_because:
            print(f"kept {each.path}: {each.kept_because}")
    return 0


def _as_ended(run: Stored) -> Stored:
    return retention.Stored(run.path, run.size_bytes, run.written_s, "")


def _remove(run: Stored) -> bool:
    """Remove a run; False if something has happened to it meanwhile."""
    if retention.look(run.path) != run:
        return False
    if run.path.is_dir():
        run_directory.remove(run.path)
    else:
        run.path.unlink(missing_ok=True)
    return True


def _age(text: str) -> float:
    return _number(text, _SECONDS, "a number and m, h, d or w, as in 30d")


def _size(text: str) -> int:
    return round(_number(text, _BYTES, "a number and KB, MB, GB or TB, as in 20GB"))


def _number(text: str, units: Mapping[str, int], expected: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)", text)
    if match is None or match[2] not in units:
        raise argparse.ArgumentTypeError(f"expected {expected}, found '{text}'")
    return float(match[1]) * units[match[2]]
