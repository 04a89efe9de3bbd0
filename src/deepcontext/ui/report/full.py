"""The report with every section, in the order in which they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.ui.report import (
    below,
    between,
    compiled_sections,
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

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.ui.report.page import Page
    from deepcontext.ui.report.sections import View


def print_full(page: Page, view: View, warnings: Sequence[str]) -> None:
    """Print everything a profile says, tables with `view.limit` rows."""
    header.print_header(page, view.profile, view.metric)
    header.print_all_warnings(page, warnings)
    findings.print_summary(page, view.profile)
    jax_sections.print_jax(page, view)
    gpu_sections.print_gpu(page, view)
    compiled_sections.print_compiled(page, view)
    sections.print_phases(page, view)
    ranks.print_ranks(page, view)
    sections.print_lines(page, view)
    below.print_below(page, view)
    sections.print_operators(page, view)
    sections.print_modules(page, view)
    sections.print_scopes(page, view)
    between.print_between(page, view)
    counters.print_counters(page, view)
    path_view.print_paths(page, view)
    memory.print_memory(page, view.profile, view.limit)
    jax_memory_sections.print_jax_memory(page, view)
    header.print_trust(page, view.profile.trust)
    page.line()
