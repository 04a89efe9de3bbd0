"""The report with every section, in reading order."""

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

    from deepcontext.ui.report.sections import View
    from deepcontext.ui.report.text_layout import TextLayout


def print_full(layout: TextLayout, view: View, warnings: Sequence[str]) -> None:
    """Print all sections of a profile, with `view.limit` rows in each table."""
    header.print_header(layout, view.profile, view.metric)
    header.print_all_warnings(layout, warnings)
    findings.print_summary(layout, view.profile)
    jax_sections.print_jax(layout, view)
    gpu_sections.print_gpu(layout, view)
    compiled_sections.print_compiled(layout, view)
    sections.print_phases(layout, view)
    ranks.print_ranks(layout, view)
    sections.print_lines(layout, view)
    below.print_below(layout, view)
    sections.print_operators(layout, view)
    sections.print_modules(layout, view)
    sections.print_scopes(layout, view)
    between.print_between(layout, view)
    counters.print_counters(layout, view)
    path_view.print_paths(layout, view)
    memory.print_memory(layout, view.profile, view.limit)
    jax_memory_sections.print_jax_memory(layout, view)
    header.print_trust(layout, view.profile.trust)
    layout.line()
