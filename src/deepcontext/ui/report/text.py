"""The text reports: `deepcontext report`, and the summary at a run's end."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from deepcontext.profiler.model.run_info import ALL_RANKS
from deepcontext.profiler.summaries.basis import basis_of
from deepcontext.profiler.summaries.jax import programs as jax_programs
from deepcontext.profiler.summaries.measures import default_metric
from deepcontext.profiler.summaries.phases import by_phase
from deepcontext.ui.account_texts import occasions_text, setup_text, steady_text
from deepcontext.ui.format import format_count, format_ns
from deepcontext.ui.report import (
    account,
    header,
    jax_sections,
    no_operators,
)
from deepcontext.ui.report.overview import MOST_LINES, print_full, print_overview
from deepcontext.ui.report.processes import print_processes
from deepcontext.ui.report.tables import print_rows
from deepcontext.ui.report.text_layout import TextLayout
from deepcontext.ui.sections import cpu
from deepcontext.ui.sections.view import View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.model.run_info import RunInfo

_SUMMARY_LINES = 5
_FULL_ROWS = 15


def render_report(
    profile: Profile,
    *,
    console: Console,
    limit: int | None = None,
    metric: str | None = None,
    full: bool = False,
    processes: Sequence[Profile] = (),
) -> None:
    """Print the report of a profile, largest values first.

    Args:
        profile: the profile.
        console: console to print to; its width, colours and encoding are respected.
        limit: rows of each table; None for 15 rows in the full report, otherwise for as many as
            fit on 80 lines.
        metric: the metric the tables are ordered by; None for `default_metric`.
        full: print every section, with every table.
        processes: the profiles of all processes of the run, if it had several.

    Raises:
        QueryError: the profile has no such metric; the message lists its metrics.
    """
    layout = TextLayout(console)
    profile = basis_of(profile).profile
    view = View(profile, metric or default_metric(profile), limit or _FULL_ROWS, processes)
    notes = () if _operator_calls(profile) else no_operators.notes(profile)
    warnings = (*profile.trust.warnings, *notes)
    above = _print_processes(console, processes) if len(processes) > 1 else 0
    if full or limit is not None:
        print_full(layout, view, warnings)
    else:
        print_overview(layout, view, warnings, MOST_LINES - above)
    _print_closing(layout, is_full=full or limit is not None)


def _print_processes(console: Console, processes: Sequence[Profile]) -> int:
    """Print the processes of a job; return the number of lines."""
    with console.capture() as captured:
        print_processes(processes, console=console)
    console.file.write(captured.get())
    return captured.get().count("\n")


def render_summary(profile: Profile, *, console: Console, path: str | None) -> None:
    """Print the summary at a run's end.

    Args:
        profile: the profile.
        console: console to print to; its width, colours and encoding are respected.
        path: the profile's file as the user named it, for the suggested commands; None for a
            profile without a file.
    """
    basis, layout = basis_of(profile), TextLayout(console)
    view = View(basis.profile, default_metric(basis.profile), _SUMMARY_LINES)
    calls = _operator_calls(basis.whole)
    layout.prose(_first_line(layout, basis.whole, calls), "bold", indent="")
    if steady := steady_text(basis):
        layout.prose(f"steady state: {steady}; set-up: {setup_text(basis)}", "bold", indent="")
    if besides := occasions_text(basis):
        layout.prose(f"besides: {besides}", "bold", indent="")
    account.print_verdicts(layout, view)
    account.print_places(layout, view)
    if packages := cpu.packages(view):
        layout.prose(packages.above, "bold", indent="")
        print_rows(layout, packages)
    jax_sections.print_jax_summary(layout, view)
    if jax_programs.section(view.profile) is None and (text := header.gpu_text(view)):
        layout.prose(f"on the GPU: {text}", "bold", indent="")
    notes = () if calls else no_operators.notes(profile)
    header.print_warnings(layout, (*profile.trust.warnings, *notes))
    if path is not None:
        _print_next(layout, path)


def _first_line(layout: TextLayout, profile: Profile, calls: int) -> str:
    run = profile.run
    program = Path(run.script).name or _followed_program(run.command)
    text = f"{program}: {format_ns(run.wall_ns)}{_of_ranks(run)} elapsed"
    if run.cpu_user_ns or run.cpu_system_ns:
        text += f", {format_ns(run.cpu_user_ns + run.cpu_system_ns)} of processor time"
    if calls:
        text += f", {format_count(calls)} operator calls"
    # The mean of steps that were found includes the first ones, which compile and import.
    steps = header.steps_text(profile, layout) if profile.run.steps else ""
    return f"{text}; steps: {steps}" if steps else text


def _operator_calls(profile: Profile) -> int:
    return sum(row.operator_calls for row in by_phase(profile))


def _of_ranks(run: RunInfo) -> str:
    return f" of {run.ranks} ranks together" if run.rank == ALL_RANKS else ""


def _print_next(layout: TextLayout, path: str) -> None:
    file = shlex.quote(path)
    layout.line(f"next: deepcontext report {file}")
    layout.line(f"      deepcontext report --json {file}")


def _print_closing(layout: TextLayout, *, is_full: bool) -> None:
    columns = ", ".join(filter(None, layout.hidden_columns))  # those of pictures have no name
    if columns:
        layout.prose(
            f"not shown at this width: {columns}; a wider terminal or --json has them",
            "dim",
            indent="",
        )
    more = "--limit N for longer tables" if is_full else "--full for every table"
    layout.line(f"next: {more}, --json for programs", "dim")


def _followed_program(command: Sequence[str]) -> str:
    """Return the program of a process that another one started, from its command."""
    words = list(command[1:])
    while words and words[0].startswith("-"):
        flag = words.pop(0)
        if flag == "-m" and words:
            return f"-m {words[0]}"
        if flag == "-c":
            break
        if flag in {"-X", "-W"}:
            words = words[1:]
    else:
        if words:
            return Path(words[0]).name
    return "the program"
