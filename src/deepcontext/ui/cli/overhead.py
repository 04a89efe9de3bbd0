"""`deepcontext overhead`: what the profiler costs one program, and a check for a CI job.

`paired_runs.py` measures. Invariant: the check fails only if the whole interval is above the limit,
so that noise alone does not fail a build.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from deepcontext import native_core
from deepcontext.errors import LimitExceededError
from deepcontext.profiler.recording.launch.options import LaunchOptions
from deepcontext.profiler.recording.launch.program import Program
from deepcontext.ui.cli.command import Parser, positive_float, positive_int
from deepcontext.ui.cli.session_options import (
    add_program_options,
    add_session_options,
    session_options,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from deepcontext.ui.cli.paired_runs import Interval, Pair


@dataclass(frozen=True, slots=True)
class Overhead:
    """What the profiler costs one program; medians over the pairs.

    Attributes:
        pairs: number of pairs.
        wall_ratio: wall time with / without the profiler.
        plain_wall_ns: wall time without the profiler, in ns.
        profiled_wall_ns: wall time with the profiler, in ns.
        start_ns: time to start the session, in ns.
        stop_ns: time to stop the session and to write the profile, in ns.
        plain_peak_rss_bytes: peak resident memory without the profiler, in bytes.
        profiled_peak_rss_bytes: peak resident memory with the profiler, in bytes.
        file_bytes: size of the profile, in bytes.
        step_ns: time of a step of the profiled run's steady state, in ns; 0 without one.
        hooks_ns: part of a step in hooks of operators, from their measured cost and number, in ns.
    """

    pairs: int
    wall_ratio: Interval
    plain_wall_ns: int
    profiled_wall_ns: int
    start_ns: int
    stop_ns: int
    plain_peak_rss_bytes: int
    profiled_peak_rss_bytes: int
    file_bytes: int
    step_ns: int
    hooks_ns: int


def make_parser() -> Parser:
    """Return the parser of the words after the command's name."""
    parser = Parser(
        "deepcontext overhead",
        usage="deepcontext overhead [options] script.py [args ...]\n"
        "       deepcontext overhead [options] -m module [args ...]\n"
        "       deepcontext overhead [options] -c code [args ...]",
        description="""\
Measure what the profiler costs a program: time, memory and file size.

The program runs in pairs, once plain and once profiled, in fresh processes and in random order
inside each pair; an additional first pair warms up and is not counted. The result is the median of
the pairs' ratios of wall time, process start to process end, with a 95 % bootstrap interval. The
program's output is discarded, its standard input is empty, and its exit code must be 0.""",
        epilog="""\
examples:
  deepcontext overhead train.py --epochs 1
  deepcontext overhead --pairs 20 --max-ratio 1.10 train.py     a check for a CI job

--max-ratio compares the limit with the lower bound of the interval, not with the median: the check
fails if the measurements exclude a ratio within the limit, and not because the machine is noisy,
because noise only widens the interval. More pairs narrow the interval and sharpen the check.

exit codes:
  0 measured, and within the limit if one was given; 2 the program is missing or fails;
  3 the lower bound of the interval is above --max-ratio; 4 the program could not be profiled""",
    )
    parser.option(
        "--pairs",
        type=positive_int,
        default=15,
        metavar="N",
        help="number of pairs (default: 15)",
    )
    parser.option(
        "--max-ratio",
        type=positive_float,
        metavar="RATIO",
        help="exit with code 3 if the interval's lower bound is above RATIO, for example 1.10",
    )
    parser.option("--json", action="store_true", help="print one JSON object instead of text")
    add_session_options(parser)
    add_program_options(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Run the command; return the exit code."""
    native_core.require()
    program = Program(arguments.program)
    program.check()
    with tempfile.TemporaryDirectory(prefix="deepcontext-") as folder:
        options = LaunchOptions(
            output=str(Path(folder) / "overhead.dcprof"),
            label="overhead.dcprof",
            session=session_options(arguments),
            report=False,
            quiet=True,
            import_folder=program.import_folder(),
            timings=str(Path(folder) / "timings.json"),
        )
        result = summarize(_measure(program, options, arguments.pairs))
    if arguments.json:
        print(json.dumps(dataclasses.asdict(result), indent=2))
    else:
        _render(result)
    if arguments.max_ratio is not None:
        check_limit(result.wall_ratio, arguments.max_ratio, result.pairs)
    return 0


def _measure(program: Program, options: LaunchOptions, count: int) -> list[Pair]:
    from rich.console import Console  # noqa: PLC0415  only where it is needed
    from rich.progress import Progress  # noqa: PLC0415

    from deepcontext.ui.cli.paired_runs import measure_pairs  # noqa: PLC0415

    console = Console(stderr=True)
    # Only on a terminal: a redrawn bar would clutter the log of a job.
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("pairs", total=count)
        return measure_pairs(
            program,
            options,
            count,
            on_pair=lambda done: progress.update(bar, completed=done),
        )


def summarize(pairs: Sequence[Pair]) -> Overhead:
    """Return the medians over `pairs` and the interval of their ratios of wall time."""
    import numpy as np  # noqa: PLC0415  `deepcontext profile` loads this module, too

    from deepcontext.ui.cli.paired_runs import ratio_interval  # noqa: PLC0415

    def median(values: Sequence[float]) -> int:
        return round(float(np.median(values)))

    ratios = np.array([pair.profiled.wall_ns / pair.plain.wall_ns for pair in pairs])
    return Overhead(
        pairs=len(pairs),
        wall_ratio=ratio_interval(ratios),
        plain_wall_ns=median([pair.plain.wall_ns for pair in pairs]),
        profiled_wall_ns=median([pair.profiled.wall_ns for pair in pairs]),
        start_ns=median([pair.start_ns for pair in pairs]),
        stop_ns=median([pair.stop_ns for pair in pairs]),
        plain_peak_rss_bytes=median([pair.plain.peak_rss_bytes for pair in pairs]),
        profiled_peak_rss_bytes=median([pair.profiled.peak_rss_bytes for pair in pairs]),
        file_bytes=median([pair.file_bytes for pair in pairs]),
        step_ns=median([pair.step_ns for pair in pairs]),
        hooks_ns=median([pair.hooks_ns for pair in pairs]),
    )


def check_limit(ratio: Interval, limit: float, pairs: int) -> None:
    """Raise if the whole interval is above `limit`; print a note if only the median is.

    Raises:
        LimitExceededError: the lower bound is above the limit.
    """
    if ratio.low > limit:
        raise LimitExceededError(
            f"the overhead is above the limit: wall time ratio {ratio.median:.3f}, 95 % interval "
            f"{ratio.low:.3f} to {ratio.high:.3f} over {pairs} pairs, limit {limit:.3f}; "
            "the lower bound decides"
        )
    if ratio.median > limit:
        print(
            f"note: the median {ratio.median:.3f} is above the limit {limit:.3f}, the lower bound "
            f"{ratio.low:.3f} is not; more --pairs would decide",
            file=sys.stderr,
        )


def _render(result: Overhead) -> None:
    from rich.console import Console  # noqa: PLC0415  only where it is needed
    from rich.table import Table  # noqa: PLC0415

    from deepcontext.ui.format import format_bytes, format_ns, format_share  # noqa: PLC0415

    ratio = result.wall_ratio
    console = Console(highlight=False)
    console.print(
        f"[bold]overhead {(ratio.median - 1) * 100:+.1f} %[/]: wall time ratio {ratio.median:.3f}, "
        f"95 % interval {ratio.low:.3f} to {ratio.high:.3f}, {result.pairs} pairs",
        soft_wrap=True,
    )
    table = Table(box=None, pad_edge=False)
    for title in ("", "plain", "profiled"):
        table.add_column(title, justify="left" if not title else "right")
    plain_wall, profiled_wall = format_ns(result.plain_wall_ns), format_ns(result.profiled_wall_ns)
    table.add_row("wall time", plain_wall, profiled_wall)
    table.add_row("  start of the profiler", "", format_ns(result.start_ns))
    table.add_row("  stop and write", "", format_ns(result.stop_ns))
    if result.step_ns:
        share = format_share(result.hooks_ns / result.step_ns)
        table.add_row("a step of the steady state", "", format_ns(result.step_ns))
        table.add_row(f"  in hooks of operators, {share}", "", format_ns(result.hooks_ns))
    table.add_row(
        "peak memory",
        format_bytes(result.plain_peak_rss_bytes),
        format_bytes(result.profiled_peak_rss_bytes),
    )
    table.add_row("profile file", "", format_bytes(result.file_bytes))
    console.print(table)
