"""The report a person reads: the long one of `deepcontext report`, the short one of a run's end."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from deepcontext.profiler import summary
from deepcontext.profiler.metric import CPU_TIME_NS
from deepcontext.profiler.run_info import ALL_RANKS
from deepcontext.ui.format import format_count, format_ns
from deepcontext.ui.report import (
    between,
    counters,
    findings,
    gpu_sections,
    header,
    jax_memory_sections,
    jax_sections,
    memory,
    path_view,
    ranks,
    sections,
)
from deepcontext.ui.report.page import Page
from deepcontext.ui.report.sections import View

if TYPE_CHECKING:
    from rich.console import Console

    from deepcontext.profiler.profile import Profile
    from deepcontext.profiler.run_info import RunInfo

_SUMMARY_LINES = 5


def render_report(
    profile: Profile,
    *,
    console: Console,
    limit: int = 15,
    metric: str = CPU_TIME_NS.name,
) -> None:
    """Print everything a profile says, largest first.

    Args:
        profile: what to print.
        console: where to; its width, colours and encoding are respected.
        limit: rows of each table.
        metric: the metric the tables are ordered by.

    Raises:
        QueryError: the profile has no such metric; the message lists those it has.
    """
    page, view = Page(console), View(profile, metric, limit)
    is_empty = not int(profile.exclusive(metric).sum())
    header.print_header(page, profile)
    if is_empty:
        header.print_emptiness(page, profile)
        findings.print_summary(page, profile)
        gpu_sections.print_gpu(page, view)
        between.print_between(page, view)
        counters.print_counters(page, view)
    else:
        if profile.trust.warnings:
            page.line()
            header.print_warnings(page, profile.trust)
        findings.print_summary(page, profile)
        jax_sections.print_jax(page, view)
        gpu_sections.print_gpu(page, view)
        sections.print_phases(page, view)
        ranks.print_ranks(page, view)
        sections.print_lines(page, view)
        sections.print_operators(page, view)
        sections.print_modules(page, view)
        sections.print_scopes(page, view)
        between.print_between(page, view)
        counters.print_counters(page, view)
        path_view.print_paths(page, view)
        memory.print_memory(page, profile, limit)
        jax_memory_sections.print_jax_memory(page, view)
    header.print_trust(page, profile.trust)
    page.line()
    _print_closing(page)


def render_summary(profile: Profile, *, console: Console, path: str | None) -> None:
    """Print the short report of a run's end.

    Args:
        profile: what to print.
        console: where to; its width, colours and encoding are respected.
        path: the profile's file as the person calls it, for the commands to type next; None when
            it is in no file.
    """
    page, view = Page(console), View(profile, CPU_TIME_NS.name, _SUMMARY_LINES)
    calls = sum(row.operator_calls for row in summary.by_phase(profile))
    if not calls:
        header.print_emptiness(page, profile)
        gpu_sections.print_gpu_summary(page, view)
        between.print_between_summary(page, view)
    else:
        page.prose(_first_line(page, profile, calls), "bold", indent="")
        sections.print_phase_bar(page, view)
        sections.print_own_lines(page, view)
        sections.print_own_modules(page, view)
        between.print_between_summary(page, view)
        jax_sections.print_jax_summary(page, view)
        gpu_sections.print_gpu_summary(page, view)
    header.print_warnings(page, profile.trust)
    if path is not None:
        _print_next(page, path, has_operators=bool(calls))


def _first_line(page: Page, profile: Profile, calls: int) -> str:
    run = profile.run
    program = Path(run.script).name or "the program"
    text = (
        f"{program}: {format_ns(run.wall_ns)}{_of_ranks(run)}, of which "
        f"{header.wall_share(profile) or 'some'} in {format_count(calls)} operator calls"
        f"{header.set_up_shares(profile)}"
    )
    steps = header.steps_text(profile, page)
    return f"{text}; steps: {steps}" if steps else text


def _of_ranks(run: RunInfo) -> str:
    return f" of {run.ranks} ranks together" if run.rank == ALL_RANKS else ""


def _print_next(page: Page, path: str, *, has_operators: bool) -> None:
    file = shlex.quote(path)
    page.line(f"next: deepcontext report {file}")
    if has_operators:
        page.line(f"      deepcontext report --json {file}")


def _print_closing(page: Page) -> None:
    if page.hidden_columns:
        columns = ", ".join(page.hidden_columns)
        page.prose(
            f"not shown at this width: {columns}; a wider terminal or --json has them",
            "dim",
            indent="",
        )
    page.line("next: --limit N for longer tables, --json for programs", "dim")
