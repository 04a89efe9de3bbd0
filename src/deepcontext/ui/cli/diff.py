"""`deepcontext diff`: what changed between two profiles. `deepcontext.ui.report` prints them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from deepcontext.errors import LimitExceededError, UserError
from deepcontext.ui.cli.command import Parser, positive_float, positive_int
from deepcontext.ui.cli.inputs import ANY_PROFILE, load_one
from deepcontext.ui.cli.windows import of_window, window_options

if TYPE_CHECKING:
    import argparse

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.comparison import Comparison


def make_parser() -> Parser:
    """Return the parser of the words after the command's name."""
    parser = Parser(
        "deepcontext diff",
        usage="deepcontext diff [options] BEFORE AFTER",
        description="""\
Print what changed between two profiles of a program, largest change first.
Steps of the steady states are compared if both profiles have one, steps of whole runs if both know
their number (from deepcontext.step(), or from calls of the optimizer), whole runs otherwise.""",
        epilog="""\
examples:
  deepcontext diff before.dcprof after.dcprof
  deepcontext diff before.dcprof after.dcprof --metric alloc_bytes
  deepcontext diff base.dcprof new.dcprof --max-ratio 1.10      in CI

exit codes:
  0 done, 2 unknown metric, unknown number of steps or missing file, 3 the total has grown by more
  than --max-ratio, 5 a file is damaged, foreign or too new""",
    )
    parser.option("before", metavar="BEFORE", help=f"baseline: {ANY_PROFILE}")
    parser.option("after", metavar="AFTER", help=f"what to compare with it: {ANY_PROFILE}")
    parser.option(
        "--per",
        choices=("step", "run"),
        help="what to compare: steps or whole runs (default: steps if both profiles have them)",
    )
    parser.option(
        "--metric",
        metavar="NAME",
        help="metric to compare (default: host_time_ns, the time in operators; elapsed_time_ns for "
        "programs without operators)",
    )
    parser.option(
        "--limit",
        type=positive_int,
        default=10,
        metavar="N",
        help="rows of each table (default: 10)",
    )
    parser.option(
        "--max-ratio",
        type=positive_float,
        metavar="RATIO",
        help="exit with code 3 if the total of AFTER is more than RATIO times the total of BEFORE",
    )
    parser.option("--json", action="store_true", help="print one JSON object instead of tables")
    window_options(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Run the command; return the exit code."""
    # Imported here, so that `deepcontext profile` starts the program without loading these modules.
    from rich.console import Console  # noqa: PLC0415

    from deepcontext.profiler.summaries.comparison import compare  # noqa: PLC0415
    from deepcontext.ui.report.difference import (  # noqa: PLC0415
        difference_to_dict,
        render_difference,
    )

    profiles = _compared(
        (
            of_window(load_one(arguments.before), arguments),
            of_window(load_one(arguments.after), arguments),
        ),
        arguments,
    )
    comparison = compare(*profiles, arguments.metric, _steps(profiles, arguments.per))
    if arguments.json:
        content = difference_to_dict(comparison, arguments.limit)
        print(json.dumps(content, indent=2, allow_nan=False))
    else:
        names = (arguments.before, arguments.after)
        render_difference(comparison, profiles, names, console=Console(), limit=arguments.limit)
    if arguments.max_ratio is not None:
        _check(comparison, arguments.max_ratio)
    return 0


def _compared(
    profiles: tuple[Profile, Profile], arguments: argparse.Namespace
) -> tuple[Profile, Profile]:
    """Return the steady states, if both runs have one, and whole runs are not asked for."""
    from deepcontext.profiler.summaries.basis import comparable  # noqa: PLC0415  as above

    if arguments.per == "run" and arguments.window is None:
        return profiles[0].undivided(), profiles[1].undivided()
    return comparable(*profiles)


def _steps(profiles: tuple[Profile, Profile], per: str | None) -> tuple[int, int] | None:
    """Return the number of steps of each profile, None to compare runs.

    Raises:
        UserError: steps are requested, and a profile has none.
    """
    from deepcontext.profiler.summaries.steps import step_count  # noqa: PLC0415  as above

    if per == "run":
        return None
    known = (step_count(profiles[0]), step_count(profiles[1]))
    if all(known):
        return known
    if per == "step":
        side = "BEFORE" if not known[0] else "AFTER"
        raise UserError(
            f"the number of steps of {side} is not known: mark them with deepcontext.step(), or "
            "compare whole runs with --per run"
        )
    return None


def _check(comparison: Comparison, limit: float) -> None:
    total = comparison.total
    if total.after > limit * total.before:
        found = f"{total.ratio:.3f}" if total.ratio is not None else "without bound"
        raise LimitExceededError(
            f"{comparison.metric} has grown by more than the limit: ratio {found}, limit "
            f"{limit:.3f}; one run each, so repeat the runs before you trust a small excess"
        )
